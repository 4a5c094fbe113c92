//! The one channel by which an agent asks codeboost to do something for it.
//!
//! A socket on which this process speaks the Model Context Protocol: JSON-RPC 2.0, one message a
//! line. In the container the tool reaches it by a relay on its own standard streams. What can be
//! asked is what [`Answers`] offers; everything else is an error to the agent, and nothing happens.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::sandbox::error::SandboxError;
use crate::stage::FileError;

/// Longest message.
const MAX_MESSAGE_BYTES: u64 = 1 << 20;
/// Most connections at a time.
const MAX_CONNECTIONS: usize = 16;
/// How often those who wait look whether it is over.
const LOOK: Duration = Duration::from_millis(25);

/// A tool that is offered.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it does, for the agent.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub arguments: Value,
}

/// What a tool came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the agent gets to read.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

/// Sets a flag when dropped: what waits for it ends, whatever happens.
#[derive(Debug)]
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whoever answers.
pub trait Answers: Sync {
    /// What is offered.
    fn tools(&self) -> Vec<Tool>;
    /// Does what is asked.
    fn call(&self, tool: &str, arguments: &Value) -> Answer;
}

/// A socket that is listened on.
#[derive(Debug)]
pub struct Channel {
    listener: UnixListener,
}

impl Channel {
    /// Makes the socket.
    ///
    /// # Errors
    /// [`SandboxError`] when it can't be made.
    pub fn open(socket: &Path) -> Result<Self, SandboxError> {
        let fail = |error| FileError::new("listen on", socket, error);
        let listener = UnixListener::bind(socket).map_err(fail)?;
        let mode = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(socket, mode).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Self { listener })
    }

    /// Answers until `is_over` is set. Connections are served side by side.
    pub fn serve(&self, answers: &dyn Answers, is_over: &AtomicBool) {
        let n_open = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !is_over.load(Ordering::Relaxed) {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(LOOK);
                    continue;
                };
                if n_open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                    n_open.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let n_open = &n_open;
                scope.spawn(move || {
                    // A connection that breaks is the agent's to open again.
                    let _ = converse(stream, answers, is_over);
                    n_open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }
}

fn converse(
    stream: UnixStream,
    answers: &dyn Answers,
    is_over: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK * 4))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let room = MAX_MESSAGE_BYTES.saturating_sub(line.len() as u64);
        match reader.by_ref().take(room).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line.ends_with(b"\n") => {
                if let Some(answer) = respond(&line, answers) {
                    let mut text = answer.to_string();
                    text.push('\n');
                    writer.write_all(text.as_bytes())?;
                }
                line.clear();
            }
            // Too long, or the end in the middle of a message.
            Ok(_) if line.len() as u64 >= MAX_MESSAGE_BYTES => return Ok(()),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                if is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// The answer to one message; none to a notification.
fn respond(line: &[u8], answers: &dyn Answers) -> Option<Value> {
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Some(failure(&Value::Null, -32700, "not JSON"));
    };
    let id = message.get("id")?;
    let params = message.get("params").cloned().unwrap_or_default();
    let result = match message.get("method").and_then(Value::as_str) {
        Some("initialize") => {
            let version = params.get("protocolVersion").and_then(Value::as_str);
            json!({
                "protocolVersion": version.unwrap_or("2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "codeboost", "version": env!("CARGO_PKG_VERSION")},
            })
        }
        Some("ping") => json!({}),
        Some("tools/list") => {
            let tools: Vec<Value> = answers
                .tools()
                .into_iter()
                .map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "inputSchema": tool.arguments,
                    })
                })
                .collect();
            json!({"tools": tools})
        }
        Some("tools/call") => {
            let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
            let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let answer = if answers.tools().iter().any(|tool| tool.name == name) {
                answers.call(name, &arguments)
            } else {
                Answer { text: "there is no such tool".into(), is_error: true }
            };
            json!({
                "content": [{"type": "text", "text": answer.text}],
                "isError": answer.is_error,
            })
        }
        _ => return Some(failure(id, -32601, "not offered")),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn failure(id: &Value, code: i32, words: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}})
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Answers for Echo {
        fn tools(&self) -> Vec<Tool> {
            vec![Tool { name: "echo", description: "Says it again".into(), arguments: json!({}) }]
        }

        fn call(&self, tool: &str, arguments: &Value) -> Answer {
            Answer { text: format!("{tool} {arguments}"), is_error: false }
        }
    }

    fn ask(message: &str) -> Option<Value> {
        respond(message.as_bytes(), &Echo)
    }

    #[test]
    fn only_what_is_offered_can_be_asked() {
        let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"NAME","arguments":{"a":1}}}"#;
        let answer = ask(&call.replace("NAME", "echo")).expect("an answer");
        assert_eq!(answer["result"]["content"][0]["text"], r#"echo {"a":1}"#);
        assert_eq!(answer["id"], 7);
        let answer = ask(&call.replace("NAME", "other")).expect("an answer");
        assert_eq!(answer["result"]["isError"], true);
        let answer = ask(r#"{"id":1,"method":"resources/list"}"#).expect("an answer");
        assert_eq!(answer["error"]["code"], -32601);
        assert_eq!(ask("{").expect("an answer")["error"]["code"], -32700);
        assert!(ask(r#"{"method":"notifications/initialized"}"#).is_none());
    }

    #[test]
    fn it_speaks_over_a_socket_and_ends_when_it_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let channel = Channel::open(&socket).expect("a socket");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| channel.serve(&Echo, &is_over));
            // Also when an assertion fails: else nobody would ever hear of it.
            let _over = Over(&is_over);
            let mut stream = UnixStream::connect(&socket).expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a copy"));
            let half = br#"{"id":1,"method""#;
            stream.write_all(half).expect("written");
            std::thread::sleep(LOOK * 6);
            stream.write_all(b":\"ping\"}\n").expect("written");
            let mut line = String::new();
            reader.read_line(&mut line).expect("an answer");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
            let long = vec![b'x'; 2 << 20];
            let _ = stream.write_all(&long);
            line.clear();
            assert_eq!(reader.read_line(&mut line).unwrap_or(0), 0, "too long a message");
        });
    }
}
