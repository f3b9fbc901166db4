//! As much of the `DevTools` protocol as looking at a page takes.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

/// A page that takes longer is not worth having.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser of our own, gone when it is dropped.
pub(super) struct Browser {
    child: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    calls: u64,
}

/// A page, and what happened on it.
pub(super) struct Page<'b> {
    browser: &'b mut Browser,
    session: String,
    target: String,
    events: Vec<Value>,
}

impl Browser {
    pub(super) fn start(program: &Path, profile: &Path) -> anyhow::Result<Self> {
        let child = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--remote-debugging-port=0", "--hide-scrollbars", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut child = Guard(Some(child));
        let address = address(profile, &mut child)?;
        let (socket, _) = tungstenite::connect(address)?;
        if let MaybeTlsStream::Plain(stream) = socket.get_ref() {
            stream.set_read_timeout(Some(PATIENCE))?;
        }
        let child = child.0.take().context("the browser is gone")?;
        Ok(Self { child, socket, calls: 0 })
    }

    pub(super) fn open(&mut self) -> anyhow::Result<Page<'_>> {
        let mut events = Vec::new();
        let made =
            self.call(None, "Target.createTarget", &json!({"url": "about:blank"}), &mut events)?;
        let target = made["targetId"].as_str().context("no target")?.to_owned();
        let attach = json!({"targetId": target, "flatten": true});
        let made = self.call(None, "Target.attachToTarget", &attach, &mut events)?;
        let session = made["sessionId"].as_str().context("no session")?.to_owned();
        let mut page = Page { browser: self, session, target, events: Vec::new() };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(page)
    }

    /// Calls a method and waits for its result; events that come before it go to `events`.
    fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        events: &mut Vec<Value>,
    ) -> anyhow::Result<Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        self.socket.send(Message::text(message.to_string()))?;
        loop {
            let mut message = self.receive()?;
            if message["id"] == self.calls {
                return match message.get("error") {
                    Some(error) => bail!("{method}: {error}"),
                    None => Ok(message["result"].take()),
                };
            }
            events.push(message);
        }
    }

    fn receive(&mut self) -> anyhow::Result<Value> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                return Ok(serde_json::from_str(text.as_str())?);
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a browser that did not get as far as being used.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where the browser listens: it writes so into its profile.
fn address(profile: &Path, child: &mut Guard) -> anyhow::Result<String> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Ok(text) = std::fs::read_to_string(profile.join("DevToolsActivePort"))
            && let Some((port, path)) = text.split_once('\n')
        {
            return Ok(format!("ws://127.0.0.1:{port}{}", path.trim()));
        }
        if let Some(child) = &mut child.0
            && let Some(status) = child.try_wait()?
        {
            bail!("the browser ended at once: {status}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the browser does not listen")
}

impl Page<'_> {
    pub(super) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.browser.call(Some(&self.session), method, params, &mut self.events)
    }

    /// Size of the window, medium and colour scheme.
    pub(super) fn emulate(&mut self, width: u32, media: &str, scheme: &str) -> anyhow::Result<()> {
        let metrics = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics)?;
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", &json!({"media": media, "features": [scheme]}))?;
        Ok(())
    }

    pub(super) fn load(&mut self, url: &str) -> anyhow::Result<()> {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": url}))?;
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let event = self.browser.receive()?;
            self.events.push(event);
        }
        // Fonts in the page are ready a little later.
        self.evaluate("document.fonts.ready.then(() => '0')")?;
        Ok(())
    }

    /// The value of a script, which writes it as JSON.
    pub(super) fn evaluate(&mut self, script: &str) -> anyhow::Result<Value> {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", &asked)?;
        let text = result["result"]["value"].as_str();
        Ok(serde_json::from_str(text.with_context(|| result.to_string())?)?)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = &Value> {
        self.events.iter()
    }

    pub(super) fn close(self) -> anyhow::Result<()> {
        let target = json!({"targetId": self.target});
        self.browser.call(None, "Target.closeTarget", &target, &mut Vec::new())?;
        Ok(())
    }
}
