//! What is wrong with a plan: a code, a place, the rule and how to mend it.

use std::fmt;

use serde::Serialize;

use super::source::{At, Document, Place};

/// The kinds of problems, as `semantics.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The input is not JSON or not YAML of the allowed subset.
    Parse,
    /// A whole number that cannot be kept exactly.
    IntegerRange,
    /// No registered version.
    Version,
    /// The value has another shape than the schema.
    Schema,
    /// The surroundings are unknown or contradict themselves, so nothing was checked.
    Context,
    /// The plan is for another issue.
    Issue,
    /// Two items have one id.
    DuplicateId,
    /// A dependency that cannot be, or that is missing.
    Dependency,
    /// A path that is not canonical.
    Path,
    /// A rename without source, or a source without rename.
    RenameSource,
    /// A path that one item uses twice.
    DuplicatePath,
    /// A folder of the path is no folder.
    PathParent,
    /// A submodule.
    Gitlink,
    /// Nothing is there to edit, delete or rename.
    MissingFile,
    /// Something is there already.
    ExistingFile,
    /// A symbolic link whose target forbids the declaration.
    SymlinkTarget,
    /// A command that can't be split into arguments.
    CommandSyntax,
    /// An item without a command that checks it.
    NoTestCommand,
    /// A command that nobody allowed yet.
    CommandNotAllowed,
    /// The plan asks something.
    OpenQuestions,
    /// Two items will probably own one change.
    LikelyAmbiguous,
    /// A text that ends where a comment begins, probably unmeant.
    CutText,
    /// An answer with edits that has another shape than its schema.
    EditSchema,
    /// Edits for another revision.
    StaleRevision,
    /// Fields that don't fit the operation.
    EditPayload,
    /// An edit of an item that is not there, or a new one that is.
    EditItem,
    /// An edit of a file that is not declared, or a new one that is.
    EditFile,
    /// An edit whose value its field can't take.
    EditCheck,
    /// A position past the end.
    EditIndex,
}

impl Code {
    /// Failures block the approval, warnings don't.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Self::NoTestCommand
            | Self::CommandNotAllowed
            | Self::OpenQuestions
            | Self::LikelyAmbiguous
            | Self::CutText => Severity::Warning,
            Self::Parse
            | Self::IntegerRange
            | Self::Version
            | Self::Schema
            | Self::Context
            | Self::Issue
            | Self::DuplicateId
            | Self::Dependency
            | Self::Path
            | Self::RenameSource
            | Self::DuplicatePath
            | Self::PathParent
            | Self::Gitlink
            | Self::MissingFile
            | Self::ExistingFile
            | Self::SymlinkTarget
            | Self::CommandSyntax
            | Self::EditSchema
            | Self::StaleRevision
            | Self::EditPayload
            | Self::EditItem
            | Self::EditFile
            | Self::EditCheck
            | Self::EditIndex => Severity::Failure,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Whether a problem blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Blocks the approval.
    Failure,
    /// Is shown, and can be approved anyway.
    Warning,
}

/// One thing that is wrong with a plan.
///
/// `message`, `rule` and `mend` may quote the plan: make them safe before a terminal sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its kind.
    pub code: Code,
    /// Whether it blocks.
    pub severity: Severity,
    /// JSON Pointer to the value; empty for the whole plan.
    pub pointer: String,
    /// Where in the input, when there is an input and a place.
    #[serde(flatten, serialize_with = "flat_place")]
    pub place: Option<Place>,
    /// What is wrong here.
    pub message: String,
    /// The rule that it breaks.
    pub rule: String,
    /// What to do about it.
    pub mend: String,
    /// Whether the key is meant, not the value.
    #[serde(skip)]
    pub at: At,
}

impl Problem {
    /// A problem with the value at `pointer`, not yet placed.
    #[must_use]
    pub fn new(
        code: Code,
        pointer: impl Into<String>,
        message: impl Into<String>,
        rule: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity: code.severity(),
            pointer: pointer.into(),
            place: None,
            message: message.into(),
            rule: rule.into(),
            mend: mend.into(),
            at: At::Value,
        }
    }

    /// Whether it blocks.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.severity == Severity::Failure
    }
}

/// Gives each problem its place in `document`, and orders them by place.
///
/// A problem whose value is not there (a missing key) gets the place of what is around it.
pub fn locate(problems: &mut [Problem], document: &Document) {
    for problem in problems.iter_mut().filter(|problem| problem.place.is_none()) {
        problem.place = document.place(&problem.pointer, problem.at);
    }
    problems.sort_by_key(|problem| problem.place.map_or((0, 0), |p| (p.line, p.column)));
}

fn flat_place<S: serde::Serializer>(
    place: &Option<Place>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Flat {
        line: Option<usize>,
        column: Option<usize>,
    }
    Flat { line: place.map(|p| p.line), column: place.map(|p| p.column) }.serialize(serializer)
}
