//! A Slurm cluster of one node: its daemons, with a configuration, a key, ports and a directory of
//! their own. Services of the system are left alone.

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long the daemons may take until the node is ready: they are there in seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of MUNGE's key.
const KEY: usize = 64;

/// The cluster; it ends with the value.
pub(super) struct Cluster {
    /// Short, as a socket's path has to be.
    place: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    /// Starts it, with the daemons' words in `logs`.
    ///
    /// # Errors
    /// When a program is not installed, or the node does not become ready.
    pub(super) fn start(logs: &Path) -> Result<Self> {
        let place = tempfile::tempdir().into_diagnostic()?;
        let mut cluster = Self { place, daemons: Vec::new() };
        cluster.configure(logs)?;
        cluster.wrap_srun()?;
        let path = |name: &str| cluster.place.path().join(name).display().to_string();
        let option = |name: &str, file: &str| format!("--{name}={}", path(file));
        let munge = [
            option("key-file", "key"),
            option("socket", "munge"),
            option("pid-file", "munge.pid"),
            option("log-file", "munge.log"),
            option("seed-file", "munge.seed"),
            // The directory is for this user alone, which it finds too narrow.
            "--force".into(),
            "--foreground".into(),
        ];
        cluster.daemon(logs, "munged", &munge)?;
        cluster.wait(|cluster| cluster.place.path().join("munge").exists())?;
        cluster.daemon(logs, "slurmctld", &["-D".into()])?;
        cluster.daemon(logs, "slurmd", &["-D".into()])?;
        cluster.wait(|cluster| {
            let asked = cluster.command("sinfo").args(["--noheader", "--format=%T"]).output();
            asked.is_ok_and(|told| told.stdout.trim_ascii() == b"idle")
        })?;
        Ok(cluster)
    }

    /// Returns what its users have in their environment. Debian has daemons where not every user's
    /// PATH leads.
    pub(super) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let (place, path) = (self.place.path(), std::env::var("PATH").unwrap_or_default());
        let path = format!("{}:{path}:/usr/sbin", place.join("bin").display());
        [("SLURM_CONF", place.join("slurm.conf")), ("PATH", path.into())]
    }

    /// Puts an `srun` first in the users' PATH that knows this cluster: within a job, Snakemake takes
    /// all variables of Slurm out of the environment.
    fn wrap_srun(&self) -> Result<()> {
        let place = self.place.path();
        let (bin, text) =
            (place.join("bin"), "#!/bin/sh\nSLURM_CONF=$0.conf exec /usr/bin/srun \"$@\"\n");
        fs::create_dir(&bin).into_diagnostic()?;
        fs::write(bin.join("srun"), text).into_diagnostic()?;
        fs::set_permissions(bin.join("srun"), Permissions::from_mode(0o755)).into_diagnostic()?;
        symlink(place.join("slurm.conf"), bin.join("srun.conf")).into_diagnostic()
    }

    fn configure(&self, logs: &Path) -> Result<()> {
        let place = self.place.path();
        let mut key = [0; KEY];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut key))
            .into_diagnostic()?;
        fs::write(place.join("key"), key).into_diagnostic()?;
        fs::set_permissions(place.join("key"), Permissions::from_mode(0o600)).into_diagnostic()?;
        let name = fs::read_to_string("/proc/sys/kernel/hostname").into_diagnostic()?;
        let host = name.trim().split('.').next().unwrap_or_default();
        let [controller, node] = ports()?;
        let (user, place) = (geteuid().as_raw(), place.display());
        let (logs, cpus) = (logs.display(), thread::available_parallelism().map_or(1, usize::from));
        let text = format!(
            "ClusterName=cassata\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={controller}\n\
             SlurmdPort={node}\n\
             SlurmUser={user}\n\
             SlurmdUser={user}\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={place}/munge\n\
             StateSaveLocation={place}/state\n\
             SlurmdSpoolDir={place}/spool\n\
             SlurmctldPidFile={place}/slurmctld.pid\n\
             SlurmdPidFile={place}/slurmd.pid\n\
             SlurmctldLogFile={logs}/slurmctld.log\n\
             SlurmdLogFile={logs}/slurmd.log\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             MpiDefault=none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\n\
             SlurmdParameters=config_overrides\n\
             ReturnToService=2\n\
             MinJobAge=3600\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=16000 State=UNKNOWN\n\
             PartitionName=test Nodes=ALL Default=YES State=UP\n"
        );
        for directory in ["state", "spool"] {
            fs::create_dir(self.place.path().join(directory)).into_diagnostic()?;
        }
        fs::write(self.place.path().join("slurm.conf"), text).into_diagnostic()
    }

    /// Prepares a program with this cluster's configuration.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.envs(self.environment());
        command
    }

    fn daemon(&mut self, logs: &Path, program: &str, options: &[String]) -> Result<()> {
        let log = File::create(logs.join(format!("{program}.out"))).into_diagnostic()?;
        let mut command = self.command(program);
        command.args(options).stdout(log.try_clone().into_diagnostic()?).stderr(log);
        let daemon = command.spawn().into_diagnostic();
        self.daemons.push(daemon.wrap_err_with(|| {
            format!("cannot run {program}; `./cassata test campaign-slurm` installs Slurm")
        })?);
        Ok(())
    }

    /// Waits until it is `ready`, all daemons being there.
    fn wait(&mut self, ready: impl Fn(&Self) -> bool) -> Result<()> {
        let begin = Instant::now();
        while !ready(self) {
            for daemon in &mut self.daemons {
                if let Some(status) = daemon.try_wait().into_diagnostic()? {
                    return Err(miette!("a daemon of Slurm has ended: {status}"));
                }
            }
            if begin.elapsed() > PATIENCE {
                return Err(miette!("the node of Slurm is not ready after {PATIENCE:?}"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Those last that others need.
        for daemon in self.daemons.iter_mut().rev() {
            kill_process(Pid::from_child(daemon), Signal::TERM).ok();
            drop(daemon.wait());
        }
    }
}

/// Returns two ports that are free.
fn ports() -> Result<[u16; 2]> {
    let free = || TcpListener::bind(("127.0.0.1", 0));
    // Both at once, or they might be the same.
    let (one, other) = (free().into_diagnostic()?, free().into_diagnostic()?);
    let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
    Ok([port(&one).into_diagnostic()?, port(&other).into_diagnostic()?])
}
