//! Where the figures of a page come from.

use analysis::result::{DeviceView, ReplayReport, SettingView, StreamCounts};
use maud::{Markup, html};
use traces::access::Fidelity;
use traces::settings::Origin;

use super::Place;
use crate::number::count;
use crate::words;

/// Source, settings and model.
pub(super) struct Basis<'a> {
    pub(super) source: &'a str,
    pub(super) fidelity: Fidelity,
    pub(super) streams: &'a StreamCounts,
    pub(super) settings: &'a [SettingView],
    /// The model, where all figures have the same.
    pub(super) device: Option<&'a DeviceView>,
}

impl<'a> Basis<'a> {
    pub(super) fn of(report: &'a ReplayReport) -> Self {
        Self {
            source: &report.source,
            fidelity: report.fidelity,
            streams: &report.streams,
            settings: &report.settings,
            device: Some(&report.device),
        }
    }

    pub(super) fn section(&self, place: &Place) -> Markup {
        html! {
            section aria-labelledby=(place.id("origin")) {
                (place.heading("origin", "Where the figures come from"))
                p { "Source: " code { (self.source) } }
                p { "Access streams: " (words::streams(self.fidelity, self.streams)) }
                div.scroll tabindex="0" role="region" aria-label="Settings, as a table" {
                    table.words {
                        caption { "Settings" }
                        thead { tr { th scope="col" { "setting" } th scope="col" { "value" } th scope="col" { "origin" } } }
                        tbody { @for setting in self.settings { (setting_row(setting)) } }
                    }
                }
                @if let Some(device) = self.device { (model(device)) }
            }
        }
    }
}

fn model(device: &DeviceView) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Device model, as a table" {
            table.words {
                caption { "Model of the machine: " (device.model) ". Time is modelled, counts are not." }
                thead { tr { th scope="col" { "parameter" } th scope="col" { "value" } } }
                tbody {
                    @for (name, value) in &device.parameters {
                        tr { th scope="row" { code { (name) } } td { (count(*value)) } }
                    }
                }
            }
        }
    }
}

fn setting_row(setting: &SettingView) -> Markup {
    let means = match setting.origin {
        Origin::Assumed => "assumed: nothing said so",
        Origin::Recovered => "recovered from what the capture shows",
        Origin::Sidecar => "stated beside the capture",
        Origin::Recorded => "recorded in the capture",
        Origin::Given => "given on the command line",
    };
    let class = (setting.origin == Origin::Assumed).then_some("care");
    html! {
        tr {
            th scope="row" { code { (setting.key) } }
            td { (setting.value) }
            td class=[class] { (means) }
        }
    }
}
