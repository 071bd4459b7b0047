//! Sparklines: one character a value, so that a curve fits into a line of text.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How a value becomes a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarScale {
    /// From 0 to the greatest value.
    Linear,
    /// From the least to the greatest value, by their logarithms.
    Logarithmic,
}

/// Draws `values` with `width` characters each.
pub fn sparkline(values: &[f64], scale: BarScale, width: usize) -> String {
    let place = |value: f64| match scale {
        BarScale::Linear => value,
        BarScale::Logarithmic => value.max(f64::MIN_POSITIVE).ln(),
    };
    let floor = match scale {
        BarScale::Linear => 0.0,
        BarScale::Logarithmic => values.iter().copied().map(place).fold(f64::INFINITY, f64::min),
    };
    let top = values.iter().copied().map(place).fold(floor, f64::max);
    let span = if top > floor { top - floor } else { 1.0 };
    values
        .iter()
        .flat_map(|value| {
            let height = (place(*value) - floor) / span * (BLOCKS.len() - 1) as f64;
            let block = BLOCKS[(height.round() as usize).min(BLOCKS.len() - 1)];
            std::iter::repeat_n(block, width)
        })
        .collect()
}

/// The line below a sparkline: labels that start at the value they belong to.
pub fn axis(labels: &[(usize, &str)], width: usize) -> String {
    let mut line = String::new();
    for (index, label) in labels {
        let at = index * width;
        let used = line.chars().count();
        if at >= used {
            line.extend(std::iter::repeat_n(' ', at - used));
            line.push_str(label);
            line.push(' ');
        }
    }
    line.trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_the_scale() {
        assert_eq!(sparkline(&[0.0, 50.0, 100.0], BarScale::Linear, 1), "▁▅█");
        assert_eq!(sparkline(&[1.0, 10.0, 100.0], BarScale::Logarithmic, 2), "▁▁▅▅██");
        assert_eq!(sparkline(&[3.0, 3.0], BarScale::Logarithmic, 1), "▁▁");
        assert_eq!(sparkline(&[], BarScale::Linear, 1), "");
    }

    #[test]
    fn labels_never_overlap() {
        assert_eq!(axis(&[(0, "0 B"), (1, "1 B"), (4, "8 B")], 2), "0 B     8 B");
    }
}
