//! A container engine, Docker or Podman, through the interface that both speak.
//!
//! Only an engine on this machine, by a Unix socket: what is mounted into containers lies here.
//! Everything outside is blocking; the asynchronous runtime stays in this room.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use bollard::query_parameters::{
    BuildImageOptionsBuilder, CreateContainerOptionsBuilder, CreateImageOptionsBuilder,
    InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::{Stream, StreamExt as _};
use tokio::runtime::Runtime;

use crate::context::Context;
use crate::sandbox::error::SandboxError;
use crate::stage::FileError;

/// How long one answer of the engine may take.
pub const ANSWER_TIME: Duration = Duration::from_secs(60);
/// How long an image may take to get into the engine.
const IMAGE_TIME: Duration = Duration::from_secs(900);

/// Which engine it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl Kind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }
}

/// An engine that answers.
#[derive(Debug)]
pub struct Engine {
    pub(in crate::sandbox) runtime: Runtime,
    pub(in crate::sandbox) docker: Docker,
    kind: Kind,
    version: String,
    socket: PathBuf,
}

/// A container of ours that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Where an engine may be reached, most wanted first.
///
/// `configured`: the socket that the local configuration names, before all else; then
/// `DOCKER_HOST`; then where the engines put their sockets.
///
/// # Errors
/// [`SandboxError::Address`] when `DOCKER_HOST` is no Unix socket.
pub fn sockets(context: &Context, configured: Option<&Path>) -> Result<Vec<PathBuf>, SandboxError> {
    if let Some(path) = configured {
        return Ok(vec![path.to_owned()]);
    }
    if let Some(host) = context.var("DOCKER_HOST") {
        let host = host.to_string_lossy().into_owned();
        let path = host.strip_prefix("unix://").map(PathBuf::from);
        return match path.filter(|path| path.is_absolute()) {
            Some(path) => Ok(vec![path]),
            None => Err(SandboxError::Address(host)),
        };
    }
    let mut sockets: Vec<PathBuf> =
        vec!["/var/run/docker.sock".into(), "/run/podman/podman.sock".into()];
    if let Some(folder) = context.var("XDG_RUNTIME_DIR") {
        sockets.push(Path::new(folder).join("docker.sock"));
        sockets.push(Path::new(folder).join("podman/podman.sock"));
    }
    Ok(sockets)
}

impl Engine {
    /// Connects with the first engine that answers. `configured`: as for [`sockets`].
    ///
    /// # Errors
    /// [`SandboxError::NoEngine`] with what was tried.
    pub fn connect(context: &Context, configured: Option<&Path>) -> Result<Self, SandboxError> {
        let mut tried = Vec::new();
        for socket in sockets(context, configured)? {
            match Self::at(&socket) {
                Ok(engine) => return Ok(engine),
                Err(words) => tried.push(format!("{}: {words}", socket.display())),
            }
        }
        Err(SandboxError::NoEngine { tried })
    }

    fn at(socket: &Path) -> Result<Self, String> {
        if !socket.exists() {
            return Err("not there".into());
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let path = socket.to_str().ok_or("not UTF-8")?;
        let seconds = IMAGE_TIME.as_secs();
        let asked = async {
            let docker = Docker::connect_with_unix(path, seconds, API_DEFAULT_VERSION)?;
            let docker = docker.negotiate_version().await?;
            let version = docker.version().await?;
            Ok::<_, bollard::errors::Error>((docker, version))
        };
        let answer =
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), asked).await });
        let (docker, version) = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(words(&error)),
            Err(_) => return Err("no answer within 10 s".into()),
        };
        let is_podman =
            version.components.iter().flatten().any(|component| component.name.contains("Podman"));
        Ok(Self {
            runtime,
            docker,
            kind: if is_podman { Kind::Podman } else { Kind::Docker },
            version: version.version.unwrap_or_default(),
            socket: socket.to_owned(),
        })
    }

    /// Which engine it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its version, in its own words.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks the engine for something, within the time for one answer.
    pub(in crate::sandbox) async fn ask<T>(
        &self,
        what: &str,
        time: Duration,
        answer: impl Future<Output = Result<T, bollard::errors::Error>>,
    ) -> Result<T, SandboxError> {
        let engine = self.kind.name();
        match tokio::time::timeout(time, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(SandboxError::Engine { engine, what: what.into(), source }),
            Err(_) => {
                let seconds = time.as_secs();
                Err(SandboxError::Silent { engine, what: what.into(), seconds })
            }
        }
    }

    /// The id of an image; `None` when it is not there.
    ///
    /// # Errors
    /// [`SandboxError`] when the engine does not say.
    pub fn image(&self, name: &str) -> Result<Option<String>, SandboxError> {
        let asked = self.docker.inspect_image(name);
        match self.runtime.block_on(self.ask("look at the image", ANSWER_TIME, asked)) {
            Ok(image) => Ok(image.id),
            Err(SandboxError::Engine { source, .. }) if is_absent(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes an image of one layer from a tar file.
    ///
    /// # Errors
    /// [`SandboxError`] with the engine's words.
    pub fn import_image(&self, tar: &Path, name: &str) -> Result<(), SandboxError> {
        // The tag goes in with the name: Podman ignores it where it belongs.
        let options = CreateImageOptionsBuilder::default().from_src("-").repo(name).build();
        let body = bollard::body_try_stream(pieces(tar)?);
        let asked = async {
            let mut answers = self.docker.create_image(Some(options), Some(body), None);
            while let Some(answer) = answers.next().await {
                answer?;
            }
            Ok(())
        };
        self.runtime.block_on(self.ask("take the image in", IMAGE_TIME, asked))
    }

    /// Makes an image from a build context. `base`: the value of its argument `BASE`.
    ///
    /// # Errors
    /// [`SandboxError`] with the engine's words.
    pub fn build_image(&self, context: &Path, base: &str, name: &str) -> Result<(), SandboxError> {
        let options = BuildImageOptionsBuilder::default()
            .t(name)
            .buildargs(&HashMap::from([("BASE", base)]))
            .networkmode("none")
            .rm(true)
            .forcerm(true)
            .build();
        let body = bollard::body_try_stream(pieces(context)?);
        let asked = async {
            let mut answers = self.docker.build_image(options, None, Some(body));
            while let Some(answer) = answers.next().await {
                answer?;
            }
            Ok(())
        };
        self.runtime.block_on(self.ask("build the image", IMAGE_TIME, asked))
    }

    pub(in crate::sandbox) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<String, SandboxError> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let asked = self.docker.create_container(Some(options), body);
        Ok(self.ask("make the container", ANSWER_TIME, asked).await?.id)
    }

    pub(in crate::sandbox) async fn inspect(
        &self,
        id: &str,
    ) -> Result<ContainerInspectResponse, SandboxError> {
        let asked = self.docker.inspect_container(id, None::<InspectContainerOptions>);
        self.ask("look at the container", ANSWER_TIME, asked).await
    }

    /// The containers, running or not, that have all these labels.
    ///
    /// # Errors
    /// [`SandboxError`] when the engine does not say.
    pub fn containers(&self, labels: &[(&str, &str)]) -> Result<Vec<Found>, SandboxError> {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", labels)]))
            .build();
        let asked = self.docker.list_containers(Some(options));
        let found = self.runtime.block_on(self.ask("list containers", ANSWER_TIME, asked))?;
        let found = found.into_iter().filter_map(|found| {
            Some(Found {
                id: found.id?,
                name: found.names.unwrap_or_default().join(", "),
                labels: found.labels.unwrap_or_default().into_iter().collect(),
            })
        });
        Ok(found.collect())
    }

    /// Removes a container, running or not. One that is not there is removed.
    ///
    /// # Errors
    /// [`SandboxError`] when it is still there.
    pub fn remove(&self, id: &str) -> Result<(), SandboxError> {
        self.runtime.block_on(self.removed(id, ANSWER_TIME))
    }

    pub(in crate::sandbox) async fn removed(
        &self,
        id: &str,
        time: Duration,
    ) -> Result<(), SandboxError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let asked = self.docker.remove_container(id, Some(options));
        match self.ask("remove the container", time, asked).await {
            Err(SandboxError::Engine { source, .. }) if is_absent(&source) => Ok(()),
            other => other,
        }
    }
}

/// Whether the engine says that there is no such thing.
pub(in crate::sandbox) fn is_absent(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { status_code: 404, .. })
}

/// An error of the client with its causes, on one line.
fn words(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A file as the body of a request, read piece by piece.
fn pieces(
    path: &Path,
) -> Result<impl Stream<Item = std::io::Result<hyper::body::Bytes>> + Send + 'static, SandboxError>
{
    let file = std::fs::File::open(path).map_err(|error| FileError::new("open", path, error))?;
    Ok(futures_util::stream::unfold(file, |mut file| async move {
        let mut piece = vec![0; 256 * 1024];
        match file.read(&mut piece) {
            Ok(0) => None,
            Ok(n) => {
                piece.truncate(n);
                Some((Ok(hyper::body::Bytes::from(piece)), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    }))
}
