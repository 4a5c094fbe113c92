//! Anthropic's `claude`: its command line, its environment, and what it says.
//!
//! The tool ends with 0 also when its answer is none, and calls a failure a success: only the
//! structured answer counts, and that is checked again by us.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::invoke::{Answered, Failure, PORT};
use crate::agent::vendor::{Rights, STAND_IN, SignIn};

/// The command line. Nothing in it comes from a plan or an issue: the prompt is on standard input.
pub(super) fn argv(
    rights: &Rights,
    schema: &str,
    model: Option<&str>,
    channel: &str,
) -> Vec<String> {
    let own = rights.own.join(",");
    let offered = rights.channel.iter().map(|tool| format!("mcp__codeboost__{tool}"));
    let allowed: Vec<String> =
        rights.own.iter().map(|tool| (*tool).to_owned()).chain(offered).collect();
    let relay = json!({"mcpServers": {"codeboost": {
        "type": "stdio", "command": "socat", "args": ["-", format!("UNIX-CONNECT:{channel}")],
    }}});
    let mut argv: Vec<String> = [
        "claude",
        "--print",
        "--output-format",
        "json",
        "--json-schema",
        schema,
        "--no-session-persistence",
        "--strict-mcp-config",
        "--mcp-config",
        &relay.to_string(),
        "--setting-sources=",
        "--tools",
        &own,
        "--allowedTools",
        &allowed.join(","),
        "--disallowedTools",
        "Bash,WebFetch,WebSearch,NotebookEdit,Agent,Task,Workflow,Skill",
        "--permission-mode",
        "dontAsk",
    ]
    .map(str::to_owned)
    .into();
    if let Some(model) = model {
        argv.extend(["--model".to_owned(), model.to_owned()]);
    }
    argv
}

pub(super) fn env(sign_in: SignIn) -> BTreeMap<String, String> {
    [
        ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{PORT}").as_str()),
        (sign_in.variable, STAND_IN),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        ("DISABLE_AUTOUPDATER", "1"),
        // Commands on the channel may take long.
        ("MCP_TOOL_TIMEOUT", "3600000"),
        ("LANG", "C.UTF-8"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

/// Reads what it wrote to standard output.
pub(super) fn read(stdout: &[u8]) -> Result<Answered, Failure> {
    let malformed = |words: &str| Failure::Malformed(words.to_owned());
    let value: Value = serde_json::from_slice(stdout.trim_ascii())
        .map_err(|error| Failure::Malformed(format!("not one JSON object: {error}")))?;
    let words = value.get("result").and_then(Value::as_str).unwrap_or_default();
    if value.get("is_error") != Some(&Value::Bool(false)) {
        if words.contains("Not logged in") {
            return Err(Failure::NoSignIn);
        }
        let status = value.get("api_error_status").and_then(Value::as_u64);
        return Err(Failure::of_status(status, words));
    }
    let answer = value.get("structured_output").filter(|answer| answer.is_object());
    let answer = answer.ok_or_else(|| malformed("it ended without a structured answer"))?;
    Ok(Answered {
        answer: answer.clone(),
        usage: value.get("usage").cloned().unwrap_or_default(),
        cost_usd: value.get("total_cost_usd").and_then(Value::as_f64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::vendor::{Phase, Vendor};

    #[test]
    fn a_read_only_phase_offers_nothing_that_writes_or_runs() {
        let line = argv(&Rights::of(Vendor::Claude, Phase::Questions), "{}", None, "/s");
        let after = |name: &str| {
            let at = line.iter().position(|word| word == name).expect("there");
            line[at + 1].clone()
        };
        assert_eq!(after("--tools"), "Read,Glob,Grep");
        assert_eq!(after("--allowedTools"), "Read,Glob,Grep,mcp__codeboost__git");
        let line = argv(&Rights::of(Vendor::Claude, Phase::Execute), "{}", Some("m"), "/s");
        assert!(line.ends_with(&["--model".to_owned(), "m".to_owned()]));
        assert!(!line.iter().any(|word| word.contains("bypassPermissions")));
    }

    #[test]
    fn only_a_structured_answer_is_one() {
        let good = br#"{"is_error":false,"subtype":"success","result":"x","total_cost_usd":0.5,
            "usage":{"input_tokens":1},"structured_output":{"summary":"done"}}"#;
        let answered = read(good).expect("an answer");
        assert_eq!(answered.answer["summary"], "done");
        assert_eq!(answered.cost_usd, Some(0.5));
        type Is = fn(&Failure) -> bool;
        let cases: [(&str, Is); 7] = [
            (r#"{"is_error":false,"subtype":"success","structured_output":null}"#, |f| {
                matches!(f, Failure::Malformed(_))
            }),
            (r#"{"subtype":"success","structured_output":{}}"#, |f| {
                matches!(f, Failure::Refused(_))
            }),
            (r#"{"is_error":true,"api_error_status":529,"subtype":"success","result":"x"}"#, |f| {
                matches!(f, Failure::Overloaded(_))
            }),
            (r#"{"is_error":true,"api_error_status":401,"result":"x"}"#, |f| {
                matches!(f, Failure::SignInRefused(_))
            }),
            (r#"{"is_error":true,"result":"Not logged in · Please run /login"}"#, |f| {
                matches!(f, Failure::NoSignIn)
            }),
            ("", |f| matches!(f, Failure::Malformed(_))),
            ("{} {}", |f| matches!(f, Failure::Malformed(_))),
        ];
        for (text, is) in cases {
            let failure = read(text.as_bytes()).expect_err(text);
            assert!(is(&failure), "{text}: {failure:?}");
        }
    }
}
