use super::*;

fn ended(code: i32, stdout: &str, stderr: &str) -> Ended {
    Ended {
        code: Some(code),
        timed_out: false,
        stdout: stdout.into(),
        stderr: stderr.into(),
        cut: false,
    }
}

fn of(ended: &Ended) -> Result<Value, GhError> {
    let answer = judge(read_answer(ended, Duration::from_secs(1))?)?;
    typed(&answer.body)
}

const OK: &str = "HTTP/1.1 200 OK\nServer: github.com\r\n\r\n";

#[test]
fn an_answer_is_the_value_a_refusal_or_unknown() {
    assert_eq!(of(&ended(0, &format!("{OK}{{\"a\":1}}"), "")), Ok(json!({"a": 1})));
    assert_eq!(of(&ended(0, "HTTP/2.0 204 No Content\r\n\r\n", "")), Ok(Value::Null));
    let refused = ended(
        1,
        "HTTP/1.1 422 Unprocessable\r\n\r\n{\"message\":\"Validation Failed\",\
         \"errors\":[{\"field\":\"head\"},{\"message\":\"No commits\"}]}",
        "gh: Validation Failed (HTTP 422)",
    );
    let words = "Validation Failed: head is not valid: No commits".to_owned();
    assert_eq!(of(&refused), Err(GhError::Refused { status: 422, words }));
    assert_eq!(of(&ended(4, "", "To get started")), Err(GhError::NotSignedIn));
    for unknown in [
        ended(0, &format!("{OK}{{\"a\":"), ""),
        ended(0, "", ""),
        ended(1, "", "Get \"https://api.github.com/user\": EOF"),
        ended(1, &format!("{OK}{{\"a\":1}}"), "unexpected EOF"),
        ended(1, "HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", "gh: HTTP 502"),
        ended(0, "HTTP/1.1 301 Moved\r\n\r\n{}", ""),
        ended(0, "{\"a\":1}", ""),
        ended(0, "HTTP/1.1 200 OK\nServer", ""),
        ended(1, &format!("{OK}{{\"data\":{{}},\"errors\":[{{\"message\":\"odd\"}}]}}"), "gh: odd"),
        Ended { timed_out: true, ..ended(0, &format!("{OK}1"), "") },
        Ended { cut: true, ..ended(0, &format!("{OK}1"), "") },
    ] {
        assert!(matches!(of(&unknown), Err(GhError::Unknown(_))), "{unknown:?}");
    }
    let forbidden =
        format!("{OK}{{\"data\":{{}},\"errors\":[{{\"type\":\"FORBIDDEN\",\"message\":\"no\"}}]}}");
    assert!(of(&ended(1, &forbidden, "gh: no")).expect_err("an error").is_refused(403));
}

#[test]
fn how_long_to_wait_is_what_github_says() {
    let of = |status: u16, headers: &[(&str, &str)], body: &str| {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        put_off(&Answer { status, headers: headers.collect(), body: body.into() }, 1000)
            .map(|wait| wait.as_secs())
    };
    assert_eq!(of(429, &[], "{}"), Some(60));
    assert_eq!(of(429, &[("retry-after", "7")], "{}"), Some(7));
    let used = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1029")];
    assert_eq!(of(403, &used, "{}"), Some(30));
    assert_eq!(of(403, &[("x-ratelimit-remaining", "9")], "{\"message\":\"no\"}"), None);
    assert_eq!(of(403, &[], "{\"message\":\"secondary rate limit\"}"), Some(60));
    assert_eq!(
        of(200, &[], "{\"errors\":[{\"type\":\"RATE_LIMITED\",\"message\":\"\"}]}"),
        Some(60)
    );
    assert_eq!(of(404, &[], "{}"), None);
}

#[test]
fn names_and_parts_of_paths_are_plain() {
    for url in
        ["https://github.com/Acme/w.x.git", "git@github.com:Acme/w.x", "ssh://git@h:22/Acme/w.x/"]
    {
        assert_eq!(Slug::of_url(url).map(|slug| slug.to_string()).as_deref(), Some("Acme/w.x"));
    }
    for url in ["/srv/a/b.git", "https://h/a/b/c", "https://h/a", "git@h:../x", "a/b"] {
        assert_eq!(Slug::of_url(url), None, "{url}");
    }
    let slug = Slug::parse("Acme/w").expect("a name");
    assert!(slug.is("acme/W") && !slug.is("acme/ww"));
    assert_eq!(segment("feature/x {owner}?#%"), "feature%2Fx%20%7Bowner%7D%3F%23%25");
}
