//! The vendors whose command-line tools are agents: who they are, how one signs in with them, and
//! what their tools may do in which phase.
//!
//! ## Signing in
//!
//! | vendor | variable | what it is | how |
//! |---|---|---|---|
//! | claude | `ANTHROPIC_API_KEY` | an API key | added on this machine |
//! | claude | `CLAUDE_CODE_OAUTH_TOKEN` | a subscription's long-lived token, from `claude setup-token` | added on this machine |
//! | claude | `ANTHROPIC_AUTH_TOKEN` | a gateway's bearer token | added on this machine |
//! | codex | `OPENAI_API_KEY`, `CODEX_API_KEY` | an API key | added on this machine |
//! | codex | `auth.json` of a subscription | a file that the tool itself renews | refused: it would have to be written inside the container |
//!
//! The container gets a word in place of each, the same for everybody.
//!
//! ## Rights
//!
//! [`RIGHTS`] says for each vendor and phase what its tool may do and what keeps it from the rest.
//! Two walls stand behind each other: the tool is told what there is, and the container holds for
//! whatever runs in it.

use crate::config::Agents;
use crate::context::Context;
use crate::sandbox::proxy::{Secret, Upstream};

/// A vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// Anthropic's `claude`.
    Claude,
    /// OpenAI's `codex`.
    Codex,
}

impl Vendor {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    /// The name by which people choose it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// The vendor of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// Method and path of what its tool needs of its interface.
    fn allowed(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Claude => &[("POST", "/v1/messages"), ("POST", "/v1/messages/count_tokens")],
            Self::Codex => &[("POST", "/v1/responses"), ("GET", "/v1/models")],
        }
    }

    fn default_url(self) -> &'static str {
        match self {
            Self::Claude => "https://api.anthropic.com",
            Self::Codex => "https://api.openai.com",
        }
    }

    /// The sign-ins that are looked for, the first that is there counts.
    #[must_use]
    pub fn sign_ins(self) -> &'static [SignIn] {
        match self {
            Self::Claude => &[
                SignIn {
                    variable: "ANTHROPIC_API_KEY",
                    what: "API key",
                    header: "x-api-key",
                    scheme: "",
                },
                SignIn {
                    variable: "CLAUDE_CODE_OAUTH_TOKEN",
                    what: "token of a subscription",
                    header: "authorization",
                    scheme: "Bearer ",
                },
                SignIn {
                    variable: "ANTHROPIC_AUTH_TOKEN",
                    what: "token of a gateway",
                    header: "authorization",
                    scheme: "Bearer ",
                },
            ],
            Self::Codex => &[
                SignIn {
                    variable: "OPENAI_API_KEY",
                    what: "API key",
                    header: "authorization",
                    scheme: "Bearer ",
                },
                SignIn {
                    variable: "CODEX_API_KEY",
                    what: "API key",
                    header: "authorization",
                    scheme: "Bearer ",
                },
            ],
        }
    }
}

/// One way to sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignIn {
    /// The variable of the person's environment that holds it.
    pub variable: &'static str,
    /// What it is, for people.
    pub what: &'static str,
    header: &'static str,
    scheme: &'static str,
}

/// What stands in the container where the tool looks for a sign-in.
pub const STAND_IN: &str = "added-by-codeboost";

/// A sign-in that is there.
#[derive(Debug, Clone)]
pub struct SignedIn {
    /// Which one.
    pub sign_in: SignIn,
    secret: Secret,
}

impl SignedIn {
    /// The sign-in of the person for a vendor; `None` when there is none.
    #[must_use]
    pub fn find(context: &Context, vendor: Vendor) -> Option<Self> {
        vendor.sign_ins().iter().find_map(|sign_in| {
            let value = context.var(sign_in.variable)?.to_str()?;
            let secret = Secret::new(value);
            (!secret.value().is_empty()).then_some(Self { sign_in: *sign_in, secret })
        })
    }

    /// Where requests of its tool go, with this sign-in.
    #[must_use]
    pub fn upstream(&self, vendor: Vendor, agents: &Agents) -> Upstream {
        let agent = match vendor {
            Vendor::Claude => &agents.claude,
            Vendor::Codex => &agents.codex,
        };
        Upstream {
            base_url: agent.url.clone().unwrap_or_else(|| vendor.default_url().to_owned()),
            allowed: vendor.allowed(),
            credential_header: self.sign_in.header,
            credential: Secret::new(&format!("{}{}", self.sign_in.scheme, self.secret.value())),
        }
    }
}

/// Replaces the value of every sign-in that the person has by a word.
///
/// For what is shown or kept of what an agent wrote; never for code.
#[must_use]
pub fn redact(context: &Context, bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    let variables = Vendor::ALL.iter().flat_map(|vendor| vendor.sign_ins());
    for value in variables.filter_map(|sign_in| context.var(sign_in.variable)) {
        let value = value.to_string_lossy();
        let value = value.trim().as_bytes();
        if value.len() < 8 {
            continue;
        }
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&text[from..], value) {
            text.splice(from + at..from + at + value.len(), *b"[secret]");
            from += at + b"[secret]".len();
        }
    }
    text
}

/// What an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Drafts a plan.
    Planning,
    /// Answers questions.
    Questions,
    /// Carries out an item.
    Execute,
    /// Judges what was carried out.
    Review,
    /// Mends what a review found.
    Fix,
}

impl Phase {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Questions => "questions",
            Self::Execute => "execute",
            Self::Review => "review",
            Self::Fix => "fix",
        }
    }

    /// Whether the project's files may be changed.
    #[must_use]
    pub fn may_edit(self) -> bool {
        matches!(self, Self::Execute | Self::Fix)
    }

    /// Whether approved commands may be asked for.
    #[must_use]
    pub fn may_run(self) -> bool {
        matches!(self, Self::Execute | Self::Review | Self::Fix)
    }
}

/// What one vendor's tool may do in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The vendor.
    pub vendor: Vendor,
    /// The phase.
    pub phase: Phase,
    /// The tool's own means that are left on.
    pub own: &'static [&'static str],
    /// What codeboost answers on the channel.
    pub channel: &'static [&'static str],
}

const CLAUDE_READS: &[&str] = &["Read", "Glob", "Grep"];
const CLAUDE_EDITS: &[&str] = &["Read", "Glob", "Grep", "Edit", "Write"];
const RUNS: &[&str] = &["run", "git"];
const ASKS: &[&str] = &["git"];
// Its own reading goes through a shell, which is off.
const CODEX_RUNS: &[&str] = &["run", "git", "read", "list", "search"];
const CODEX_ASKS: &[&str] = &["git", "read", "list", "search"];
const CODEX_EDITS: &[&str] = &["apply_patch"];

/// What each vendor's tool may do in each phase.
pub const RIGHTS: [Rights; 10] = [
    rights(Vendor::Claude, Phase::Planning, CLAUDE_READS, ASKS),
    rights(Vendor::Claude, Phase::Questions, CLAUDE_READS, ASKS),
    rights(Vendor::Claude, Phase::Execute, CLAUDE_EDITS, RUNS),
    rights(Vendor::Claude, Phase::Review, CLAUDE_READS, RUNS),
    rights(Vendor::Claude, Phase::Fix, CLAUDE_EDITS, RUNS),
    rights(Vendor::Codex, Phase::Planning, &[], CODEX_ASKS),
    rights(Vendor::Codex, Phase::Questions, &[], CODEX_ASKS),
    rights(Vendor::Codex, Phase::Execute, CODEX_EDITS, CODEX_RUNS),
    rights(Vendor::Codex, Phase::Review, &[], CODEX_RUNS),
    rights(Vendor::Codex, Phase::Fix, CODEX_EDITS, CODEX_RUNS),
];

const fn rights(
    vendor: Vendor,
    phase: Phase,
    own: &'static [&'static str],
    channel: &'static [&'static str],
) -> Rights {
    Rights { vendor, phase, own, channel }
}

impl Rights {
    /// Those of a vendor's tool in a phase.
    #[must_use]
    pub fn of(vendor: Vendor, phase: Phase) -> Self {
        RIGHTS
            .into_iter()
            .find(|rights| rights.vendor == vendor && rights.phase == phase)
            .expect("the table has every pair, which a test proves")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::output::{ColorChoice, Format, Output};

    fn context(vars: &[(&str, &str)]) -> Context {
        let env: BTreeMap<_, _> =
            vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Context::new("/".into(), env, Output::new(Format::Text, 0, ColorChoice::Never, true))
    }

    #[test]
    fn every_vendor_has_its_rights_in_every_phase() {
        for vendor in Vendor::ALL {
            for phase in
                [Phase::Planning, Phase::Questions, Phase::Execute, Phase::Review, Phase::Fix]
            {
                let rights = Rights::of(vendor, phase);
                let edits = ["Edit", "Write", "apply_patch"];
                let may_edit = rights.own.iter().any(|own| edits.contains(own));
                assert_eq!(may_edit, phase.may_edit(), "{vendor:?} {phase:?}");
                assert_eq!(rights.channel.contains(&"run"), phase.may_run());
                for shell in ["Bash", "shell", "exec_command", "WebFetch", "WebSearch"] {
                    assert!(!rights.own.contains(&shell), "{vendor:?} {phase:?}");
                }
            }
        }
    }

    #[test]
    fn the_first_sign_in_counts_and_never_shows_itself() {
        let context = context(&[
            ("CLAUDE_CODE_OAUTH_TOKEN", "sentinel-oauth"),
            ("ANTHROPIC_AUTH_TOKEN", "sentinel-gateway"),
            ("OPENAI_API_KEY", " "),
        ]);
        let signed_in = SignedIn::find(&context, Vendor::Claude).expect("signed in");
        assert_eq!(signed_in.sign_in.variable, "CLAUDE_CODE_OAUTH_TOKEN");
        let upstream = signed_in.upstream(Vendor::Claude, &Agents::default());
        assert_eq!(upstream.credential.value(), "Bearer sentinel-oauth");
        assert!(!format!("{signed_in:?} {upstream:?}").contains("sentinel-oauth"));
        assert!(SignedIn::find(&context, Vendor::Codex).is_none());
    }

    #[test]
    fn what_is_kept_of_output_has_no_sign_in() {
        let context = context(&[("ANTHROPIC_API_KEY", "sentinel-key\n")]);
        let kept = redact(&context, b"a sentinel-key b sentinel-key");
        assert_eq!(kept, b"a [secret] b [secret]");
    }
}
