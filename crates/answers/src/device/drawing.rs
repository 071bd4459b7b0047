//! The topology of a machine as a picture in characters.

use crate::report::places::picture;
use crate::system::MachineAnswer;

/// Characters by row and column.
struct Canvas(Vec<Vec<char>>);

impl Canvas {
    fn put(&mut self, x: usize, y: usize, text: &str) {
        for (offset, letter) in text.chars().enumerate() {
            self.0[y][x + offset] = letter;
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn widest<'a>(texts: impl Iterator<Item = &'a String>) -> usize {
    texts.map(|text| length(text)).max().unwrap_or(0)
}

/// Draws a machine in characters.
pub fn draw(machine: &MachineAnswer) -> String {
    let picture = picture(machine);
    let columns = picture.nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let box_width: Vec<usize> = (0..columns)
        .map(|column| widest(picture.nodes.iter().filter(|n| n.column == column).flat_map(|n| &n.lines)) + 4)
        .collect();
    let drawn = || picture.edges.iter().filter(|edge| edge.drawn);
    let labels: Vec<Vec<String>> = drawn().map(|edge| edge.link.label()).collect();
    // Room for the label and a blank on either side of it.
    let gap: Vec<usize> = (0..columns)
        .map(|column| {
            let own = drawn().zip(&labels).filter(|(edge, _)| picture.nodes[edge.from].column == column);
            widest(own.flat_map(|(_, lines)| lines)) + 2
        })
        .collect();
    let left: Vec<usize> =
        (0..columns).map(|column| (0..column).map(|before| box_width[before] + gap[before]).sum()).collect();
    let inside = picture.nodes.iter().map(|node| node.lines.len()).max().unwrap_or(1);
    // A label has one line above its bar and the others below it.
    let height = (inside + 2).max(labels.iter().map(Vec::len).max().unwrap_or(0) + 2) + 1;
    let width = left[columns - 1] + box_width[columns - 1];
    let mut canvas = Canvas(vec![vec![' '; width]; picture.rows * height]);

    for node in &picture.nodes {
        let (x, y, wide) = (left[node.column], node.row * height, box_width[node.column]);
        canvas.put(x, y, &format!("┌{}┐", "─".repeat(wide - 2)));
        for (line, text) in node.lines.iter().enumerate() {
            canvas.put(x, y + 1 + line, &format!("│ {text}{} │", " ".repeat(wide - 4 - length(text))));
        }
        canvas.put(x, y + 1 + node.lines.len(), &format!("└{}┘", "─".repeat(wide - 2)));
    }
    for (edge, lines) in drawn().zip(&labels) {
        let (from, to) = (&picture.nodes[edge.from], &picture.nodes[edge.to]);
        let right = left[from.column] + box_width[from.column];
        let (end, y) = (left[to.column], to.row * height + 1);
        match picture.branch(edge) {
            None => canvas.put(right - 1, y, &format!("├{}┤", "─".repeat(end - right))),
            Some(branch) => {
                let x = (right - 3).saturating_sub(2 * branch).max(left[from.column] + 1);
                let bottom = from.row * height + from.lines.len() + 1;
                canvas.put(x, bottom, "┬");
                (bottom + 1..y).for_each(|above| canvas.put(x, above, "│"));
                canvas.put(x, y, &format!("└{}┤", "─".repeat(end - x - 1)));
            }
        }
        canvas.put(right + 1, y - 1, &lines[0]);
        for (line, text) in lines[1..].iter().enumerate() {
            canvas.put(right + 1, y + 1 + line, text);
        }
    }

    let mut text = format!("{}\n\n", machine.title());
    let rows: Vec<String> =
        canvas.0.iter().map(|row| row.iter().collect::<String>().trim_end().to_string()).collect();
    text += rows.join("\n").trim_end();
    text += "\n";
    for edge in picture.edges.iter().filter(|edge| !edge.drawn) {
        text += &format!(
            "and {} between {} and {}\n",
            edge.link.label().join(", "),
            edge.link.from,
            edge.link.to
        );
    }
    text
}
