//! The profiles that ship inside the program. A new file under `profiles/` is added here.

use crate::Category;

macro_rules! file {
    ($category:ident, $folder:literal, $name:literal) => {
        (
            Category::$category,
            $name,
            concat!("profiles/", $folder, "/", $name, ".toml"),
            include_str!(concat!("../../../profiles/", $folder, "/", $name, ".toml")),
        )
    };
}

/// Each profile's category, name, file and text.
pub(crate) const FILES: &[(Category, &str, &str, &str)] = &[
    file!(Device, "devices", "bluefield1"),
    file!(Device, "devices", "bluefield2"),
    file!(Device, "devices", "bluefield3"),
    file!(Device, "devices", "connectx4"),
    file!(Device, "devices", "connectx6"),
    file!(Device, "devices", "connectx7"),
    file!(Device, "devices", "liquidio-cn2350"),
    file!(Device, "devices", "liquidio-cn2360"),
    file!(Device, "devices", "stingray"),
    file!(Host, "hosts", "cli"),
    file!(Host, "hosts", "e5-2620v4"),
    file!(Host, "hosts", "srv"),
    file!(Host, "hosts", "xeon5218"),
    file!(Host, "hosts", "xeon6426y"),
    file!(Testbed, "testbeds", "bluefield3-pair"),
    file!(Testbed, "testbeds", "liu2019"),
    file!(Testbed, "testbeds", "nvme"),
    file!(Testbed, "testbeds", "rack"),
    file!(Testbed, "testbeds", "rack-cli"),
    file!(Testbed, "testbeds", "sun"),
    file!(Testbed, "testbeds", "sun-regex"),
    file!(Overlay, "overlays", "cxl-host-dma"),
    file!(Overlay, "overlays", "dpa-cache"),
    file!(Overlay, "overlays", "dpa-memory"),
    file!(Overlay, "overlays", "ideal-links"),
    file!(Overlay, "overlays", "no-inbound-read-limit"),
    file!(Overlay, "overlays", "one-pool"),
    file!(Overlay, "overlays", "soc-ddio"),
    file!(Overlay, "overlays", "soc-pcie-mtu"),
    file!(Overlay, "overlays", "soc-pcie-mtu-large"),
];
