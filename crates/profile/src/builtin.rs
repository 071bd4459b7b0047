//! The profiles that ship inside the program. A new file under `profiles/` is added here.

use crate::Category;

/// Each profile's category, name, file and text.
pub(crate) const FILES: &[(Category, &str, &str, &str)] = &[
    (
        Category::Device,
        "bluefield2",
        "profiles/devices/bluefield2.toml",
        include_str!("../../../profiles/devices/bluefield2.toml"),
    ),
    (
        Category::Device,
        "connectx4",
        "profiles/devices/connectx4.toml",
        include_str!("../../../profiles/devices/connectx4.toml"),
    ),
    (
        Category::Device,
        "connectx6",
        "profiles/devices/connectx6.toml",
        include_str!("../../../profiles/devices/connectx6.toml"),
    ),
    (Category::Host, "cli", "profiles/hosts/cli.toml", include_str!("../../../profiles/hosts/cli.toml")),
    (Category::Host, "srv", "profiles/hosts/srv.toml", include_str!("../../../profiles/hosts/srv.toml")),
    (
        Category::Host,
        "xeon5218",
        "profiles/hosts/xeon5218.toml",
        include_str!("../../../profiles/hosts/xeon5218.toml"),
    ),
    (
        Category::Testbed,
        "rack",
        "profiles/testbeds/rack.toml",
        include_str!("../../../profiles/testbeds/rack.toml"),
    ),
    (
        Category::Testbed,
        "rack-cli",
        "profiles/testbeds/rack-cli.toml",
        include_str!("../../../profiles/testbeds/rack-cli.toml"),
    ),
    (
        Category::Testbed,
        "sun",
        "profiles/testbeds/sun.toml",
        include_str!("../../../profiles/testbeds/sun.toml"),
    ),
    (
        Category::Overlay,
        "ideal-links",
        "profiles/overlays/ideal-links.toml",
        include_str!("../../../profiles/overlays/ideal-links.toml"),
    ),
    (
        Category::Overlay,
        "one-pool",
        "profiles/overlays/one-pool.toml",
        include_str!("../../../profiles/overlays/one-pool.toml"),
    ),
    (
        Category::Overlay,
        "no-inbound-read-limit",
        "profiles/overlays/no-inbound-read-limit.toml",
        include_str!("../../../profiles/overlays/no-inbound-read-limit.toml"),
    ),
];
