//! Sources and results by URL: a web server of this test that fails now and then, and an S3 server.
#![cfg(feature = "remote")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use common::{CORPUS, rareplay};

const POLICY: [&str; 2] = ["--policy", "linux-6.18"];

/// Files of the corpus, under the names they have in the store.
const FILES: [&str; 6] = [
    "linux-6.18/inter2.ftrace.zst",
    "linux-6.18/inter2.meta.toml",
    "join/xfs_issue.ftrace.zst",
    "join/xfs_issue.meta.toml",
    "join/xfs_run.blktrace.zst",
    "workloads/rand64k.workload.toml",
];
const SOURCES: [&str; 3] = [FILES[0], FILES[2], FILES[5]];

/// What a run printed, and its exit code.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

fn replay(list: &Path, args: &[&str], environment: &[(&str, &str)]) -> Run {
    let list = list.display().to_string();
    let output = rareplay(&[&["replay", "--from-list", &list], &POLICY[..], args].concat())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Results by the end of their source's name, without what depends on where it is.
fn figures(lines: &str, base: &str) -> BTreeMap<String, Value> {
    let figure = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let mut row = line["results"][0].clone();
        for field in ["source", "tags"] {
            row.as_object_mut().unwrap().remove(field);
        }
        let source = line["source"].as_str().unwrap();
        (source.strip_prefix(base).unwrap_or(source).to_owned(), row)
    };
    lines.lines().map(figure).collect()
}

fn list(folder: &Path, base: &str, more: &[&str]) -> PathBuf {
    let path = folder.join(format!("{}.csv", base.split(':').next().unwrap()));
    let sources = SOURCES.iter().map(|source| format!("{base}{source}"));
    let lines: Vec<_> = ["source".to_owned()]
        .into_iter()
        .chain(sources)
        .chain(more.iter().map(|source| format!("{base}{source}")))
        .collect();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

/// What the files give where they are.
fn expected(folder: &Path) -> BTreeMap<String, Value> {
    let base = format!("{CORPUS}/");
    let path = folder.join("local.csv");
    fs::rename(list(folder, &base, &[]), &path).unwrap();
    let run = replay(&path, &[], &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    figures(&run.stdout, &base)
}

/// A web server over the corpus that answers every other request with an error of its own.
struct Flaky {
    url: String,
    requests: Arc<AtomicUsize>,
    errors: Arc<AtomicUsize>,
    ranges: Arc<Mutex<Vec<String>>>,
}

impl Flaky {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let flaky =
            Self { url, requests: Arc::default(), errors: Arc::default(), ranges: Arc::default() };
        let (requests, errors) = (flaky.requests.clone(), flaky.errors.clone());
        let ranges = flaky.ranges.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let fails = requests.fetch_add(1, Ordering::Relaxed) % 2 == 0;
                if fails {
                    errors.fetch_add(1, Ordering::Relaxed);
                }
                // A client that went away is none of the server's business.
                drop(answer(&stream.unwrap(), fails, &ranges));
            }
        });
        flaky
    }
}

fn answer(stream: &TcpStream, fails: bool, ranges: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut parts = first.split(' ');
    let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    for line in lines {
        let line = line?;
        if line.to_ascii_lowercase().starts_with("range:") {
            ranges.lock().unwrap().push(line.clone());
        }
        if line.is_empty() {
            break;
        }
    }
    let file = fs::read(format!("{CORPUS}{path}")).ok();
    let (status, body) = match file {
        _ if fails => ("503 Slow Down", Vec::new()),
        Some(bytes) => ("200 OK", bytes),
        None => ("404 Not Found", Vec::new()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"{}\"\r\n\
         Last-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n",
        body.len(),
        body.len()
    )?;
    if method == "GET" {
        stream.write_all(&body)?;
    }
    Ok(())
}

#[test]
fn a_web_server_that_fails_now_and_then_is_a_source() {
    let folder = tempfile::tempdir().unwrap();
    let expected = expected(folder.path());
    let server = Flaky::start();
    let list = list(folder.path(), &server.url, &["none.trace"]);
    let run = replay(&list, &[], &[]);
    assert_eq!(run.code, 65, "{}", run.stderr);
    let mut found = figures(&run.stdout, &server.url);
    let none = found.remove("none.trace").unwrap();
    assert_eq!(found, expected);
    let reason = none["error"].as_str().unwrap();
    assert_eq!(reason, format!("cannot read {}none.trace: no object none.trace", server.url));
    assert!(server.errors.load(Ordering::Relaxed) > SOURCES.len());
}

#[test]
fn what_has_the_same_tags_is_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Flaky::start();
    let list = list(folder.path(), &server.url, &[]);
    let results = folder.path().join("results").display().to_string();
    let first = replay(&list, &["-o", &results], &[]);
    assert!(first.stderr.contains("3 sources listed: 3 replayed"), "{}", first.stderr);
    let requests = server.requests.load(Ordering::Relaxed);
    let again = replay(&list, &["-o", &results], &[]);
    assert!(
        again.stderr.contains("3 sources listed: 0 replayed, 3 there before"),
        "{}",
        again.stderr
    );
    let more = server.requests.load(Ordering::Relaxed) - requests;
    assert!(more < requests, "{more} requests after {requests}");
}

#[test]
fn what_is_no_url_of_a_store_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    fs::write(&path, "source\nftp://host/run.trace\n").unwrap();
    let run = replay(&path, &[], &[]);
    assert_eq!(run.code, 65);
    assert!(run.stderr.contains("ftp://host/run.trace cannot be used: "), "{}", run.stderr);
    let run = replay(&path, &["-o", "ftp://host/results"], &[]);
    assert_eq!((run.code, &*run.stdout), (65, ""));
    assert!(
        run.stderr.starts_with("rareplay: ftp://host/results cannot be used: "),
        "{}",
        run.stderr
    );
}

/// moto's S3 server; it ends with this.
struct Moto {
    server: Child,
    url: String,
    python: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

impl Moto {
    fn start() -> Self {
        let python = std::env::var("RAREPLAY_MOTO_PYTHON").expect("a Python with moto[server]");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Command::new(&python)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { server, url: format!("http://127.0.0.1:{port}"), python };
        let is_up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        for _ in 0..600 {
            if is_up() {
                return moto;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("moto does not start");
    }

    fn environment(&self) -> [(&str, &str); 5] {
        [
            ("AWS_ENDPOINT", &self.url),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ]
    }

    /// Runs some Python with `s3`, a client of the server.
    fn python(&self, script: &str) {
        let head = "import sys, boto3\ns3 = boto3.client('s3', endpoint_url=sys.argv[1])\n";
        let mut child = Command::new(&self.python)
            .args(["-", &self.url])
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .envs(self.environment())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        write!(child.stdin.take().unwrap(), "{head}{script}").unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
    }
}

/// Sources, the list and results in an S3 server.
#[test]
#[ignore = "needs RAREPLAY_MOTO_PYTHON, a Python with moto[server]"]
fn an_s3_server_has_sources_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = expected(folder.path());
    let moto = Moto::start();
    let mut script = "s3.create_bucket(Bucket='captures')\n".to_owned();
    for file in FILES {
        script += &format!("s3.upload_file('{CORPUS}/{file}', 'captures', 'fleet/{file}')\n");
    }
    // More than one piece: an incompressible comment of 80 MiB behind a workload.
    script += &format!(
        "import os\ntext = open('{CORPUS}/{}', 'rb').read()\n\
         s3.put_object(Bucket='captures', Key='fleet/large.workload.toml',\n\
             Body=text + b'\\n# ' + os.urandom(40 << 20).hex().encode() + b'\\n')\n",
        FILES[5]
    );
    moto.python(&script);
    let base = "s3://captures/fleet/";
    let environment = moto.environment();
    let path = list(folder.path(), base, &["large.workload.toml", "none.trace"]);
    let run = replay(&path, &[], &environment);
    assert_eq!(run.code, 65, "{}", run.stderr);
    let mut found = figures(&run.stdout, base);
    let none = found.remove("none.trace").unwrap();
    let reason = "cannot read s3://captures/fleet/none.trace: no object fleet/none.trace";
    assert_eq!(none["error"], reason);
    let large = found.remove("large.workload.toml").unwrap();
    assert_eq!(large["folios_by_order"], expected[FILES[5]]["folios_by_order"]);
    assert!(large["source_bytes"].as_u64().unwrap() > 80 << 20);
    assert_eq!(found, expected);

    // The list beside its sources, results beside both.
    let text = ["source\n", SOURCES[0], "\n", SOURCES[1], "\n", SOURCES[2], "\n"].concat();
    moto.python(&format!(
        "s3.put_object(Bucket='captures', Key='fleet/list.csv', Body={text:?})\n"
    ));
    let list = Path::new("s3://captures/fleet/list.csv");
    let results = "s3://captures/results";
    let first = replay(list, &["-o", results], &environment);
    assert!(first.stderr.contains("3 sources listed: 3 replayed"), "{}", first.stderr);
    let again = replay(list, &["-o", results], &environment);
    assert!(
        again.stderr.contains("3 sources listed: 0 replayed, 3 there before"),
        "{}",
        again.stderr
    );
    // A joined file that changes is another content.
    moto.python(
        "body = s3.get_object(Bucket='captures', Key='fleet/workloads/rand64k.workload.toml')['Body'].read()\n\
         s3.put_object(Bucket='captures', Key='fleet/workloads/rand64k.workload.toml', Body=body + b'\\n# other\\n')\n",
    );
    let other = replay(list, &["-o", results], &environment);
    assert!(
        other.stderr.contains("3 sources listed: 1 replayed, 2 there before"),
        "{}",
        other.stderr
    );

    let merged = folder.path().join("all.parquet").display().to_string();
    let merge = rareplay(&["merge", results, "-o", &merged]).envs(environment).output().unwrap();
    assert!(merge.status.success(), "{}", String::from_utf8_lossy(&merge.stderr));
    let inspect = |what: &str| {
        let mut command = rareplay(&["inspect", what, "--format", "json"]);
        let output = command.envs(environment).output().unwrap();
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report.as_object_mut().unwrap().remove("results");
        report
    };
    assert_eq!(inspect(results), inspect(&merged));
    let folios: u64 = expected.values_mut().map(|row| row["folios"].as_u64().unwrap()).sum();
    assert_eq!(inspect(&merged)["policies"][0]["all"]["folios"]["total"], folios);

    // A bucket that is not there.
    let nowhere = folder.path().join("nowhere.csv");
    fs::write(&nowhere, "source\ns3://nowhere/run.trace\n").unwrap();
    let run = replay(&nowhere, &[], &environment);
    assert_eq!(run.code, 65);
    assert!(run.stderr.contains("NoSuchBucket"), "{}", run.stderr);
}
