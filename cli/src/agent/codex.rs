//! OpenAI's `codex`: its command line, its environment, and what it says.
//!
//! Its shell is off, and with it its own reading: it reads, lists and searches by the channel. Its
//! own sandbox is off too; it can't start in a container, which is the sandbox. It never checks the
//! answer against the schema that it is given.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::invoke::{Answered, Failure, PORT};
use crate::agent::vendor::{STAND_IN, SignIn};

/// What is switched off besides the shell: means to reach elsewhere or to start others.
const OFF: [&str; 12] = [
    "shell_tool",
    "plugins",
    "apps",
    "remote_plugin",
    "goals",
    "multi_agent",
    "image_generation",
    "tool_suggest",
    "skill_search",
    "browser_use",
    "computer_use",
    "enable_request_compression",
];

/// The command line. `schema`, `channel`: paths inside. Nothing in it comes from a plan or an
/// issue: the prompt is on standard input.
pub(super) fn argv(
    sign_in: SignIn,
    schema: &str,
    model: Option<&str>,
    channel: &str,
) -> Vec<String> {
    let relay = format!(
        "mcp_servers.codeboost={{command=\"socat\",args=[\"-\",\"UNIX-CONNECT:{channel}\"],\
         tool_timeout_sec=3600}}"
    );
    let provider = format!(
        "model_providers.vendor={{name=\"vendor\",base_url=\"http://127.0.0.1:{PORT}/v1\",\
         env_key=\"{}\",wire_api=\"responses\",supports_websockets=false,request_max_retries=3,\
         stream_max_retries=3}}",
        sign_in.variable
    );
    let mut argv: Vec<String> = [
        "codex",
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--ephemeral",
        "--ignore-user-config",
        "--ignore-rules",
        "--strict-config",
        "--output-schema",
        schema,
        "-C",
        "/work",
        "-c",
        "web_search=disabled",
        "-c",
        "model_provider=vendor",
        "-c",
        &provider,
        "-c",
        &relay,
        "-c",
        "analytics.enabled=false",
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "shell_environment_policy.inherit=none",
    ]
    .map(str::to_owned)
    .into();
    argv.extend(OFF.iter().flat_map(|feature| ["--disable".to_owned(), (*feature).to_owned()]));
    if let Some(model) = model {
        argv.extend(["-m".to_owned(), model.to_owned()]);
    }
    argv.extend(["--dangerously-bypass-approvals-and-sandbox", "-"].map(str::to_owned));
    argv
}

pub(super) fn env(sign_in: SignIn) -> BTreeMap<String, String> {
    [(sign_in.variable, STAND_IN), ("LANG", "C.UTF-8")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Reads what it wrote to standard output: one JSON object a line.
pub(super) fn read(stdout: &[u8]) -> Result<Answered, Failure> {
    let text = std::str::from_utf8(stdout)
        .map_err(|_| Failure::Malformed("its output is not UTF-8".into()))?;
    let mut last_message = None;
    let mut usage = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            return Err(Failure::Malformed("a line of its output is not JSON".into()));
        };
        match event.get("type").and_then(Value::as_str) {
            Some("item.completed") => {
                let item = event.get("item").cloned().unwrap_or_default();
                if item.get("type").and_then(Value::as_str) == Some("agent_message") {
                    last_message = item.get("text").and_then(Value::as_str).map(str::to_owned);
                }
            }
            Some("turn.completed") => usage = event.get("usage").cloned(),
            Some("turn.failed") => {
                let words = event.pointer("/error/message").and_then(Value::as_str);
                let words = words.unwrap_or_default();
                return Err(Failure::of_status(status_in(words), words));
            }
            _ => {}
        }
    }
    let usage =
        usage.ok_or_else(|| Failure::CutOff("it ended in the middle of its turn".into()))?;
    let message =
        last_message.ok_or_else(|| Failure::Malformed("it ended without a last message".into()))?;
    let answer = serde_json::from_str(&message)
        .map_err(|error| Failure::Malformed(format!("its last message is not JSON: {error}")))?;
    Ok(Answered { answer, usage: json!(usage), cost_usd: None })
}

/// The HTTP status that a message of the tool names.
fn status_in(words: &str) -> Option<u64> {
    let at = words.find("status ")?;
    let digits: String = words[at + 7..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::vendor::Vendor;

    #[test]
    fn the_shell_is_off_and_the_prompt_is_on_standard_input() {
        let line = argv(Vendor::Codex.sign_ins()[0], "/schema", Some("m"), "/s");
        let off = line.windows(2).any(|pair| pair == ["--disable", "shell_tool"]);
        assert!(off, "{line:?}");
        assert_eq!(line.last().map(String::as_str), Some("-"));
    }

    #[test]
    fn the_last_message_of_a_whole_turn_is_the_answer() {
        let message = |text: &str| json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}});
        let end = json!({"type": "turn.completed", "usage": {"input_tokens": 1}});
        let lines = |events: &[Value]| {
            events.iter().map(|event| format!("{event}\n")).collect::<String>().into_bytes()
        };
        let good = lines(&[message("first"), message(r#"{"summary":"done"}"#), end.clone()]);
        assert_eq!(read(&good).expect("an answer").answer["summary"], "done");
        type Is = fn(&Failure) -> bool;
        let failed = |words: &str| json!({"type": "turn.failed", "error": {"message": words}});
        let cases: [(Vec<u8>, Is); 6] = [
            (lines(&[message("not json"), end.clone()]), |f| matches!(f, Failure::Malformed(_))),
            (lines(&[end]), |f| matches!(f, Failure::Malformed(_))),
            (lines(&[message("{}")]), |f| matches!(f, Failure::CutOff(_))),
            (lines(&[failed("unexpected status 401 Unauthorized")]), |f| {
                matches!(f, Failure::SignInRefused(_))
            }),
            (lines(&[failed("unexpected status 503 x")]), |f| matches!(f, Failure::Overloaded(_))),
            (b"nonsense\n".to_vec(), |f| matches!(f, Failure::Malformed(_))),
        ];
        for (text, is) in cases {
            let failure = read(&text).expect_err("a failure");
            assert!(is(&failure), "{failure:?}");
        }
    }
}
