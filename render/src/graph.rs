//! The dependencies of a plan's items as a small drawing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::Plan;

const WIDTH: usize = 56;
const HEIGHT: usize = 28;
const GAP_X: usize = 40;
const GAP_Y: usize = 12;
const EDGE: usize = 4;

/// An SVG element; `None` when no item depends on another.
///
/// Items stand in columns, each to the right of all that it depends on. Nothing but ids and
/// numbers goes into it.
pub(crate) fn svg(plan: &Plan) -> Option<String> {
    if plan.items.iter().all(|item| item.depends_on.is_empty()) {
        return None;
    }
    // Dependencies are earlier items; another one has no place and draws no line.
    let mut places: BTreeMap<&ItemId, (usize, usize)> = BTreeMap::new();
    let mut heights: Vec<usize> = Vec::new();
    for item in &plan.items {
        let needs = item.depends_on.iter().filter_map(|id| places.get(id));
        let column = needs.map(|(column, _)| column + 1).max().unwrap_or(0);
        if heights.len() <= column {
            heights.resize(column + 1, 0);
        }
        places.insert(&item.id, (column, heights[column]));
        heights[column] += 1;
    }
    let left = |column: usize| EDGE + column * (WIDTH + GAP_X);
    let top = |row: usize| EDGE + row * (HEIGHT + GAP_Y);
    let width = left(heights.len() - 1) + WIDTH + EDGE;
    let height = top(heights.iter().max()? - 1) + HEIGHT + EDGE;
    let words: Vec<_> = plan
        .items
        .iter()
        .filter(|item| !item.depends_on.is_empty())
        .map(|item| {
            let ids: Vec<_> = item.depends_on.iter().map(|id| id.as_str()).collect();
            format!("{} depends on {}", item.id, ids.join(" and "))
        })
        .collect();
    let mut out = format!(
        "<svg class=\"graph\" role=\"img\" aria-label=\"{}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">",
        words.join("; ")
    );
    for item in &plan.items {
        let Some((to_column, to_row)) = places.get(&item.id) else { continue };
        for (from_column, from_row) in item.depends_on.iter().filter_map(|id| places.get(id)) {
            let (x1, y1) = (left(*from_column) + WIDTH, top(*from_row) + HEIGHT / 2);
            let (x2, y2) = (left(*to_column), top(*to_row) + HEIGHT / 2);
            let bend = GAP_X / 2;
            let _ = write!(
                out,
                "<path d=\"M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}\"/>",
                x1 + bend,
                x2 - bend
            );
        }
    }
    for (id, (column, row)) in &places {
        let (x, y) = (left(*column), top(*row));
        let _ = write!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\
             <text x=\"{}\" y=\"{}\">{id}</text>",
            x + WIDTH / 2,
            y + HEIGHT / 2 + 4
        );
    }
    out.push_str("</svg>");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = include_str!("../../schema/examples/plan-412-r3.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_item_has_its_own_place_right_of_what_it_needs() {
        let mut plan = plan();
        let item = plan.items[0].clone();
        plan.items =
            [("P1", vec![]), ("P2", vec!["P1"]), ("P3", vec!["P1"]), ("P4", vec!["P1", "P3"])]
                .into_iter()
                .map(|(id, needs)| {
                    let mut item = item.clone();
                    item.id = ItemId::parse(id).unwrap();
                    item.depends_on =
                        needs.into_iter().map(|id| ItemId::parse(id).unwrap()).collect();
                    item
                })
                .collect();
        let svg = svg(&plan).unwrap();
        assert_eq!(svg.matches("<rect").count(), 4);
        assert_eq!(svg.matches("<path").count(), 4);
        assert!(svg.contains("P4 depends on P1 and P3"), "{svg}");
        let mut places: Vec<_> =
            svg.split("<rect ").skip(1).map(|one| one.split(" width").next().unwrap()).collect();
        assert_eq!(places[3], "x=\"196\" y=\"4\"", "in the third column");
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 4);
    }

    #[test]
    fn without_dependencies_there_is_nothing_to_draw() {
        let mut plan = plan();
        for item in &mut plan.items {
            item.depends_on.clear();
        }
        assert_eq!(svg(&plan), None);
    }
}
