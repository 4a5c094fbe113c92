//! Untrusted Markdown to a small tree that the page builds elements from.
//!
//! Raw HTML stays visible as text. Links and images become their text followed by the address,
//! also as text: nothing in the tree can load or open anything.

use comrak::nodes::{AstNode, ListType, NodeValue};
use comrak::{Arena, Options, parse_document};
use serde_json::{Value, json};

/// Deeper nesting is written as plain text.
const MAX_DEPTH: usize = 24;

/// The tree of `text`: a list of nodes. A string is text; `["p", …]` is an element with its
/// children. Elements: `p h li ul ol quote pre code em strong del br hr table tr th td link`.
pub(crate) fn tree(text: &str) -> Value {
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    let arena = Arena::new();
    let root = parse_document(&arena, text, &options);
    Value::Array(children(root, 0))
}

fn children<'a>(node: &'a AstNode<'a>, depth: usize) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for child in node.children() {
        let value = if depth >= MAX_DEPTH { json!(plain(child)) } else { one(child, depth) };
        match (out.last_mut(), value) {
            (_, Value::Null) => {}
            (Some(Value::String(last)), Value::String(next)) => last.push_str(&next),
            (_, value) => out.push(value),
        }
    }
    out
}

fn element<'a>(name: &str, node: &'a AstNode<'a>, depth: usize) -> Value {
    let mut list = vec![json!(name)];
    list.extend(children(node, depth + 1));
    Value::Array(list)
}

fn one<'a>(node: &'a AstNode<'a>, depth: usize) -> Value {
    match &node.data.borrow().value {
        NodeValue::Paragraph => element("p", node, depth),
        NodeValue::Heading(_) => element("h", node, depth),
        NodeValue::BlockQuote => element("quote", node, depth),
        NodeValue::List(list) if list.list_type == ListType::Ordered => element("ol", node, depth),
        NodeValue::List(_) => element("ul", node, depth),
        NodeValue::Item(_) | NodeValue::TaskItem(_) => element("li", node, depth),
        NodeValue::CodeBlock(code) => json!(["pre", code.literal]),
        NodeValue::HtmlBlock(html) => json!(["pre", html.literal]),
        NodeValue::ThematicBreak => json!(["hr"]),
        NodeValue::Table(_) => element("table", node, depth),
        NodeValue::TableRow(_) => element("tr", node, depth),
        NodeValue::TableCell => {
            let head = node
                .parent()
                .is_some_and(|row| matches!(row.data.borrow().value, NodeValue::TableRow(true)));
            element(if head { "th" } else { "td" }, node, depth)
        }
        NodeValue::Text(text) => json!(text),
        NodeValue::SoftBreak => json!("\n"),
        NodeValue::LineBreak => json!(["br"]),
        NodeValue::Code(code) => json!(["code", code.literal]),
        NodeValue::HtmlInline(html) => json!(html),
        NodeValue::Emph => element("em", node, depth),
        NodeValue::Strong => element("strong", node, depth),
        NodeValue::Strikethrough => element("del", node, depth),
        NodeValue::Link(link) | NodeValue::Image(link) => {
            let words = plain(node);
            if words == link.url || words.is_empty() {
                json!(["link", link.url])
            } else {
                let mut list = vec![json!("span")];
                list.extend(children(node, depth + 1));
                list.push(json!(" "));
                list.push(json!(["link", link.url]));
                Value::Array(list)
            }
        }
        _ => json!(plain(node)),
    }
}

/// All text below a node.
fn plain<'a>(node: &'a AstNode<'a>) -> String {
    let mut out = String::new();
    for below in node.descendants() {
        match &below.data.borrow().value {
            NodeValue::Text(text) => out.push_str(text),
            NodeValue::Code(code) => out.push_str(&code.literal),
            NodeValue::CodeBlock(code) => out.push_str(&code.literal),
            NodeValue::HtmlInline(html) => out.push_str(html),
            NodeValue::HtmlBlock(html) => out.push_str(&html.literal),
            NodeValue::SoftBreak | NodeValue::LineBreak => out.push('\n'),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_and_links_are_text() {
        insta::assert_snapshot!(
            tree("a <b onclick=x>*c*</b> [go](javascript:alert(1)) ![i](http://e/x.png)\n\n<script>x</script>\n"),
            @r#"[["p","a <b onclick=x>",["em","c"],"</b> ",["span","go"," ",["link","javascript:alert(1)"]]," ",["span","i"," ",["link","http://e/x.png"]]],["pre","<script>x</script>\n"]]"#
        );
    }

    #[test]
    fn blocks_keep_their_shape() {
        insta::assert_snapshot!(
            tree("# T\n\n1. one\n2. `two`\n\n> q\n\n```rs\nfn x() {}\n```\n"),
            @r#"[["h","T"],["ol",["li",["p","one"]],["li",["p",["code","two"]]]],["quote",["p","q"]],["pre","fn x() {}\n"]]"#
        );
    }

    #[test]
    fn deep_nesting_ends_in_text() {
        let tree = tree(&format!("{}x", "> ".repeat(200))).to_string();
        assert!(tree.matches("quote").count() <= MAX_DEPTH && tree.contains('x'));
    }
}
