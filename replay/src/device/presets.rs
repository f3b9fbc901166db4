//! Devices that come with the program: the files of `devices/`.

/// Name and text of each preset.
const PRESETS: &[(&str, &str)] = &[
    ("nvme", include_str!("../../../devices/nvme.toml")),
    ("nvme-datacenter", include_str!("../../../devices/nvme-datacenter.toml")),
    ("nvme-optane", include_str!("../../../devices/nvme-optane.toml")),
    ("nvme-low-latency", include_str!("../../../devices/nvme-low-latency.toml")),
    ("nvme-qemu", include_str!("../../../devices/nvme-qemu.toml")),
    ("sata-ssd", include_str!("../../../devices/sata-ssd.toml")),
    ("hdd", include_str!("../../../devices/hdd.toml")),
    ("virtio", include_str!("../../../devices/virtio.toml")),
    ("network", include_str!("../../../devices/network.toml")),
];

/// The preset that holds where none is named.
pub const DEFAULT: &str = "nvme";

/// The text of a preset.
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, text)| *text)
}

/// All presets, by name.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRESETS.iter().copied()
}

/// Their names, for a message.
pub(super) fn names() -> String {
    let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
