//! Opens reports in headless Chromium, and holds what a reader gets against the JSON beside them.
//!
//! Each page is shown wide and narrow, light and dark, on screen and for print. It must not ask for
//! anything but itself, nor complain, nor be wider than the window; the labels of its charts must be
//! inside of them, apart from each other, and readable; and every table and description must say
//! what the JSON says.

mod client;
mod figures;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use client::{Browser, Page};
use figures::Data;

const PROBE: &str = include_str!("browser/probe.js");
/// Sources of the pages: each has one of its own, and all of them share one.
const CAPTURES: [&str; 3] =
    ["linux-6.18/seq1m_after4k_ms512", "linux-6.1/mmap_rand", "linux-6.18/thr4same"];
/// Sweeps of the first of them.
const SWEEPS: [(&str, &[(&str, &str)]); 3] = [
    ("sweep", &[("read_ahead_kb", "32..1024")]),
    ("sweep-devices", &[("device", "hdd,nvme"), ("read_ahead_kb", "0,64..512")]),
    ("sweep-pair", &[("read_ahead_kb", "32..1024"), ("max_sectors_kb", "128..1024")]),
];
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// How a page is looked at.
struct View {
    name: &'static str,
    width: u32,
    media: &'static str,
    scheme: &'static str,
}

const VIEWS: [View; 6] = [
    View { name: "wide-light", width: 1280, media: "screen", scheme: "light" },
    View { name: "wide-dark", width: 1280, media: "screen", scheme: "dark" },
    View { name: "phone-light", width: 390, media: "screen", scheme: "light" },
    View { name: "phone-dark", width: 390, media: "screen", scheme: "dark" },
    View { name: "narrow", width: 360, media: "screen", scheme: "light" },
    View { name: "print", width: 794, media: "print", scheme: "dark" },
];

/// A page, and what its charts have to say.
struct Subject {
    name: String,
    folder: PathBuf,
    data: Data,
}

impl Subject {
    /// A page that is in the folder of its name.
    fn new(
        scratch: &Path,
        name: &str,
        data: impl Fn(&Path) -> anyhow::Result<Data>,
    ) -> anyhow::Result<Self> {
        let folder = scratch.join(name);
        let data = data(&folder).with_context(|| name.to_owned())?;
        Ok(Self { name: name.to_owned(), folder, data })
    }
}

/// Writes the pages into folders of their own.
fn subjects(scratch: &Path) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for capture in CAPTURES {
        let name = capture.replace('/', "-");
        reports::write_dir(&crate::gallery::report(capture)?, &scratch.join(&name), false)?;
        subjects.push(Subject::new(scratch, &name, Data::of_replay)?);
    }
    let judged = crate::gallery::judged(&CAPTURES)?;
    reports::write_corpus(&judged, &scratch.join("report"), false)?;
    subjects.push(Subject::new(scratch, "report", Data::of_corpus)?);
    for (name, ranges) in SWEEPS {
        let swept = crate::gallery::swept(CAPTURES[0], ranges)?;
        reports::write_sweep(&swept, &scratch.join(name), false)?;
        subjects.push(Subject::new(scratch, name, Data::of_sweep)?);
    }
    Ok(subjects)
}

/// Opens the pages; screenshots go into `screenshots`, if given.
pub(crate) fn run(screenshots: Option<&Path>) -> anyhow::Result<()> {
    let Some(program) = find_chromium() else {
        println!("skipped: no Chromium here (looked for {}, and $CHROMIUM)", NAMES.join(", "));
        return Ok(());
    };
    let scratch = tempfile::tempdir()?;
    let subjects = subjects(scratch.path())?;
    let mut browser = Browser::start(&program, &scratch.path().join("profile"))?;
    for subject in &subjects {
        for view in &VIEWS {
            let name = format!("{}-{}", subject.name, view.name);
            let image = screenshots.map(|folder| folder.join(format!("{name}.png")));
            check(&mut browser, subject, view, image.as_deref()).context(name)?;
        }
    }
    println!("{} pages in {} views: as they should be", subjects.len(), VIEWS.len());
    Ok(())
}

fn find_chromium() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("CHROMIUM") {
        return Some(given.into());
    }
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    NAMES.iter().find(|name| runs(name)).map(PathBuf::from)
}

/// One page in one view.
fn check(
    browser: &mut Browser,
    subject: &Subject,
    view: &View,
    image: Option<&Path>,
) -> anyhow::Result<()> {
    let url = format!("file://{}", subject.folder.join("index.html").display());
    let mut page = browser.open()?;
    page.emulate(view.width, view.media, view.scheme)?;
    page.load(&url)?;
    let seen = page.evaluate(PROBE)?;
    if let Some(path) = image {
        screenshot(&mut page, &seen, view.width, path)?;
    }
    quiet(&page, &url)?;
    laid_out(&seen, view)?;
    figures::check(&seen, &subject.data)?;
    page.close()
}

fn screenshot(page: &mut Page<'_>, seen: &Value, width: u32, path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let clip = json!({"x": 0, "y": 0, "width": width, "height": seen["height"], "scale": 1});
    let taken =
        page.call("Page.captureScreenshot", &json!({"clip": clip, "captureBeyondViewport": true}))?;
    let image = taken["data"].as_str().context("no image")?;
    Ok(std::fs::write(path, BASE64_STANDARD.decode(image)?)?)
}

/// Nothing was asked for but the page, and nothing complained about.
fn quiet(page: &Page<'_>, url: &str) -> anyhow::Result<()> {
    for event in page.events() {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let asked = params["request"]["url"].as_str().unwrap_or_default();
                ensure!(asked == url || asked.starts_with("data:"), "it asks for {asked}");
            }
            "Log.entryAdded" => bail!("the console has: {}", params["entry"]["text"]),
            "Runtime.consoleAPICalled" => bail!("the console has: {}", params["args"]),
            "Runtime.exceptionThrown" => bail!("a script failed: {}", params["exceptionDetails"]),
            _ => {}
        }
    }
    Ok(())
}

fn laid_out(seen: &Value, view: &View) -> anyhow::Result<()> {
    let width = seen["scrollWidth"].as_u64().context("no width")?;
    ensure!(width <= u64::from(view.width), "the page is {width} wide, of {}", view.width);
    let problems = seen["problems"].as_array().context("no list of problems")?;
    ensure!(problems.is_empty(), "{problems:#?}");
    Ok(())
}
