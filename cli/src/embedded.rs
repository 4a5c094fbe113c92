//! Files that the program carries inside: the sample project of the demo.

/// A file of the sample: its path, and its bytes.
pub(crate) type File = (&'static str, &'static [u8]);

macro_rules! demo {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_bytes!(concat!("../../site-fixtures/demo/", $path)) as &[u8])),*]
    };
}

/// The sample, by paths inside `site-fixtures/demo/`; a test holds the list against the folder.
pub(crate) const DEMO: &[File] = demo![
    "foreign.patch",
    "issue.md",
    "patches/01-P1.patch",
    "patches/02-P2.patch",
    "patches/03-P3.patch",
    "plan.yaml",
    "project/CHANGELOG.md",
    "project/README.md",
    "project/bin/post.sh",
    "project/docs/tide.png",
    "project/lib/log.sh",
    "project/lib/retry.sh",
    "project/tests/lib.sh",
    "project/tests/retry_test.sh",
    "project/tests/run.sh",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_sample_is_embedded() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../site-fixtures/demo");
        let mut found: Vec<String> = walkdir::WalkDir::new(&root)
            .into_iter()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect();
        found.sort();
        let listed: Vec<&str> = DEMO.iter().map(|(path, _)| *path).collect();
        assert_eq!(found, listed);
    }
}
