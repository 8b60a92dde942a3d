//! The service under load, and killed under load.

mod client;
mod kills;
mod load;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use efface_server::{Server, ServerSettings};

pub(crate) use kills::kills;
pub(crate) use load::{bare_child, load};

use crate::Result;

/// A server in a process of its own, as its users have it.
struct ServerProcess {
    child: Child,
    address: String,
}

impl ServerProcess {
    fn start(act: &str, folder: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([act, &folder.to_string_lossy()])
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut address = String::new();
        let output = child.stdout.take().ok_or("the server has no output")?;
        BufReader::new(output).read_line(&mut address)?;
        if address.trim().is_empty() {
            return Err("the server did not start".into());
        }
        Ok(Self {
            child,
            address: address.trim().to_owned(),
        })
    }

    /// Ends it as a power failure of the process would.
    fn kill(mut self) -> Result {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// No server outlives a run that failed.
impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves a folder until it is killed; the address is its first line.
pub(crate) fn child(folder: &Path) -> Result {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut settings = ServerSettings::new(folder, ([127, 0, 0, 1], 0).into());
        settings.limits.concurrent_requests = 4096;
        settings.limits.connections = 4096;
        let server = Server::start(settings).await?;
        println!("{}", server.address()?);
        server.run(std::future::pending()).await;
        Ok(())
    })
}
