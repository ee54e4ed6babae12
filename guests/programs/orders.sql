-- A table of orders, without a disk: inserts, an index, a join, aggregates, updates, deletions.
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, town TEXT);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER, what TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO customer SELECT i, printf('customer %05d', i * 7919 % 10007), 'town ' || (i * 31 % 17) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
INSERT INTO purchase SELECT i, 1 + i * 7919 % 200, i * 104729 % 99991, printf('item %04d', i * 613 % 4099) FROM n;
CREATE INDEX purchase_customer ON purchase (customer);
CREATE INDEX purchase_what ON purchase (what, cents);
SELECT town, count(*), sum(cents) FROM purchase JOIN customer ON customer = customer.id GROUP BY town ORDER BY 3;
SELECT name, max(cents) FROM purchase JOIN customer ON customer = customer.id GROUP BY customer ORDER BY 2 DESC LIMIT 20;
UPDATE purchase SET cents = cents + 1 WHERE what LIKE 'item 1%';
DELETE FROM purchase WHERE cents % 7 = 3;
SELECT count(*), sum(length(what)) FROM purchase WHERE what BETWEEN 'item 1000' AND 'item 3000';
