//! A package repository that a guest reaches over its network, served from this computer to itself.
//!
//! It answers apt's requests for the few files of one directory, one for each connection. A library for servers
//! would bring more than that into the program, for one test.

use miette::{Result, miette};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a client may say nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A repository that is served until it is dropped.
pub(super) struct Repository {
    port: u16,
    over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Repository {
    /// Serves the files of `directory` to this computer, at a port that is free.
    ///
    /// # Errors
    /// When there is no such directory, or no port.
    pub(super) fn serve(directory: &Path) -> Result<Self> {
        let directory = directory.to_owned();
        if !directory.join("Packages").is_file() {
            return Err(miette!(
                help = "`./cassata test debian` makes it",
                "{} is no package repository: it has no file `Packages`",
                directory.display()
            ));
        }
        let cannot = |error| miette!("cannot serve {}: {error}", directory.display());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let server = thread::spawn(move || {
            for stream in listener.incoming() {
                if told.load(Ordering::Acquire) {
                    return;
                }
                // A client that goes away is the client's concern: what it wanted is missing there.
                drop(stream.and_then(|stream| answer(&directory, stream)));
            }
        });
        Ok(Self { port, over, server: Some(server) })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The server waits for a connection.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(server) = self.server.take() {
            drop(server.join());
        }
    }
}

/// Answers one request of HTTP (RFC 9112), and closes the connection.
fn answer(directory: &Path, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // What else it says is not needed, but has to be read.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let file = named(directory, &request).and_then(|path| fs::read(path).ok());
    let (status, body) = file.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body)
}

/// Returns the file of `directory` that `GET PATH HTTP/1.1` means, if there is one: by the last part of the path.
fn named(directory: &Path, request: &str) -> Option<PathBuf> {
    let path = request.strip_prefix("GET ")?.split(' ').next()?;
    let name = path.rsplit('/').next()?;
    let mut files = fs::read_dir(directory).ok()?.filter_map(Result::ok);
    files.find(|file| file.file_name() == name).map(|file| file.path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn what_is_there_is_served_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Repository::serve(directory.path()).is_err());
        fs::write(directory.path().join("Packages"), "a list").unwrap();
        let repository = Repository::serve(directory.path()).unwrap();
        let ask = |path: &str| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, repository.port())).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let found = ask("/./Packages");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n"), "{found}");
        assert!(found.ends_with("\r\n\r\na list"), "{found}");
        for path in ["/./InRelease", "/", "/..", "/../Packages.gz"] {
            assert!(ask(path).starts_with("HTTP/1.1 404"), "{path}");
        }
    }
}
