//! From Markdown to a page.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::markdown::slug;
use crate::http::html::escape;

/// The icon of the dashboard, as a URL that needs no request.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' \
                    height='32' rx='8' fill='%233350cf'/%3E%3Cpath d='M9 12h14M9 20h14' stroke='%23fff' stroke-width='2.5' \
                    stroke-linecap='round'/%3E%3C/svg%3E";

/// A table that is wider than its place is scrolled, also by keyboard.
const TABLE: &str = "<div class=\"table\" tabindex=\"0\">";

/// The page of a reference.
pub(super) fn page(reference: &str) -> String {
    let (content, headings) = content(reference);
    let title = headings
        .first()
        .map(|heading| heading.text.as_str())
        .unwrap_or_default();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"{ICON}\">\n<link rel=\"stylesheet\" href=\"docs.css\">\n\
         <link rel=\"alternate\" type=\"text/markdown\" href=\"docs.md\">\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the content</a>\n<nav aria-label=\"Contents\">\n"
    );
    page.push_str(&contents(&headings));
    page.push_str("</nav>\n<main id=\"content\">\n");
    html::push_html(&mut page, content.into_iter());
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// A heading of the page.
struct Heading {
    level: HeadingLevel,
    text: String,
    id: String,
}

/// The events of the text, with an identifier for each heading.
fn content(reference: &str) -> (Vec<Event<'_>>, Vec<Heading>) {
    let mut headings: Vec<Heading> = Vec::new();
    let mut content = Vec::new();
    // Where the heading that is being read begins.
    let mut begin = None;
    for event in Parser::new_ext(reference, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                begin = Some(content.len());
                content.push(event);
            }
            Event::End(TagEnd::Heading(level)) => {
                let at = begin.take().unwrap_or_default();
                let text = text_of(&content[at..]);
                let id = slug(&text);
                content[at] = Event::Start(Tag::Heading {
                    level,
                    id: Some(id.clone().into()),
                    classes: Vec::new(),
                    attrs: Vec::new(),
                });
                headings.push(Heading { level, text, id });
                content.push(event);
            }
            Event::Start(Tag::Table(_)) => {
                content.push(Event::Html(CowStr::Borrowed(TABLE)));
                content.push(event);
            }
            Event::End(TagEnd::Table) => {
                content.push(event);
                content.push(Event::Html(CowStr::Borrowed("</div>\n")));
            }
            // A description is a text: what looks like markup is shown as it is.
            Event::Html(text) | Event::InlineHtml(text) => content.push(Event::Text(text)),
            event => content.push(event),
        }
    }
    (content, headings)
}

/// A text as it is written in HTML.
fn text_of(events: &[Event<'_>]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

/// The links to all groups and what is in them.
fn contents(headings: &[Heading]) -> String {
    let mut list = String::from("<ul>\n");
    let mut is_inside = false;
    for (at, heading) in headings.iter().enumerate() {
        let link = |heading: &Heading| format!("<li><a href=\"#{}\">{}</a>", heading.id, escape(&heading.text));
        match heading.level {
            HeadingLevel::H2 => {
                if is_inside {
                    list.push_str("</ul></li>\n");
                }
                list.push_str(&link(heading));
                is_inside = headings.get(at + 1).is_some_and(|next| next.level == HeadingLevel::H3);
                list.push_str(if is_inside { "\n<ul>\n" } else { "</li>\n" });
            }
            HeadingLevel::H3 => {
                list.push_str(&link(heading));
                list.push_str("</li>\n");
            }
            _ => {}
        }
    }
    list.push_str(if is_inside { "</ul></li>\n</ul>\n" } else { "</ul>\n" });
    list
}
