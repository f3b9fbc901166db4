//! Captures of the corpus as tables: every result is the same from either.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use analysis::events::convert;
use analysis::inspect::inspect;
use analysis::load::{LoadOptions, open};
use analysis::recover::recover;
use analysis::verify::verify;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/corpus");

/// What `inspect` and `verify` say of a source, whatever it is called.
fn results(path: &Path) -> [String; 2] {
    let opened = open(path, &LoadOptions::default()).expect("opens");
    let mut source = opened.source.expect("has streams");
    "source".clone_into(&mut source.name);
    let inspected = inspect("source", &opened.capture, Ok(&source));
    let policy = recover(&mut source).expect("a known kernel");
    let verified = verify(&source, &*policy).expect("was recorded");
    [format!("{inspected:#?}"), format!("{verified:#?}")]
}

fn captures() -> Vec<PathBuf> {
    let folders = fs::read_dir(CORPUS).expect("corpus").map(|entry| entry.expect("entry").path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| {
        fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path())
    });
    // blktrace's part of a joined run has no accesses of its own.
    let is_whole = |name: &str| name.ends_with(".ftrace.zst");
    files.filter(|file| file.to_str().is_some_and(is_whole)).collect()
}

#[test]
fn a_table_gives_the_results_of_its_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let captures = captures();
    assert!(captures.len() > 10);
    for capture in captures {
        // No sidecar beside it: all that is known is in the file.
        let path = folder.path().join("table.parquet");
        let file = File::create(&path).expect("creates");
        let converted = convert(&capture, &LoadOptions::default(), file, "table.parquet");
        let events = converted.expect("converts").events;
        let [inspected, verified] = results(&capture);
        let [table_inspected, table_verified] = results(&path);
        assert!(events > 1000, "{}: {events}", capture.display());
        assert_eq!(table_inspected, inspected, "{}", capture.display());
        assert_eq!(table_verified, verified, "{}", capture.display());
    }
}

/// Converting a table gives the same bytes again, as does converting on other threads.
#[test]
fn a_table_of_a_table_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.parquet");
    let capture = Path::new(CORPUS).join("linux-6.1/mmap_rand.ftrace.zst");
    let bytes = |path: &Path, threads| {
        let mut bytes = Vec::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            convert(path, &LoadOptions::default(), &mut bytes, "test").expect("converts")
        });
        bytes
    };
    let first = bytes(&capture, 1);
    fs::write(&path, &first).expect("writes");
    assert!(bytes(&path, 3) == first);
}

#[test]
fn a_compressed_table_is_read_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table.parquet.zst");
    let capture = Path::new(CORPUS).join("linux-7.3/mmap_seq.ftrace.zst");
    let mut bytes = Vec::new();
    convert(&capture, &LoadOptions::default(), &mut bytes, "test").expect("converts");
    fs::write(&path, zstd::encode_all(&bytes[..], 1).expect("packs")).expect("writes");
    assert_eq!(results(&path), results(&capture));
}
