//! Where a file can be broken, and how.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, ReturnType, Signature, Stmt, Type, UnOp};

/// How the text of a site becomes a choice.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Another expression in its place.
    Instead(String),
    /// The opposite of a condition.
    Opposite,
    /// A statement that is left out.
    LeftOut,
    /// A statement in front of a body.
    Before(String),
}

/// One place and one way to break it.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bytes of the file that it changes; none where it only adds.
    pub start: usize,
    /// The byte behind them.
    pub end: usize,
    /// Where a person finds it, from 1.
    pub line: usize,
    /// What is changed, for people.
    pub what: String,
    /// How.
    pub edit: Edit,
}

impl Site {
    /// The text that stands in its place, where mutant `number` chooses.
    pub fn text(&self, original: &str, number: usize) -> String {
        let on = format!("crate::offpath_mutant::on({number})");
        match &self.edit {
            Edit::Instead(other) => format!("(if {on} {{ {other} }} else {{ {original} }})"),
            Edit::Opposite => format!("(({original}) != {on})"),
            Edit::LeftOut => format!("if !{on} {{ {original} }}"),
            Edit::Before(statement) => format!(" if {on} {{ {statement} }}"),
        }
    }
}

/// All sites of a file, in the order of the text.
pub fn sites(text: &str) -> syn::Result<Vec<Site>> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, found: Vec::new() };
    finder.visit_file(&file);
    let mut found = finder.found;
    found.sort_by(|a, b| (a.start, a.end, &a.what).cmp(&(b.start, b.end, &b.what)));
    Ok(found)
}

struct Finder<'a> {
    text: &'a str,
    found: Vec<Site>,
}

fn is_of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

/// Whether a chain of `&&` binds names, which only the chain itself may do.
fn binds(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(inner) => binds(&inner.expr),
        _ => false,
    }
}

fn other_operator(operator: &BinOp) -> Option<&'static [&'static str]> {
    Some(match operator {
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::BitXor(_) => &["|"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitAndAssign(_) => &["|="],
        _ => return None,
    })
}

/// What a body of this type can give without doing anything.
fn empty_answers(output: &ReturnType) -> Vec<String> {
    let ReturnType::Type(_, kind) = output else { return vec!["return;".into()] };
    match kind.as_ref() {
        Type::Path(path) => {
            let last = path.path.segments.last();
            match last.map(|segment| segment.ident.to_string()).unwrap_or_default().as_str() {
                "bool" => vec!["return true;".into(), "return false;".into()],
                "Option" => vec!["return None;".into()],
                "Result" => vec!["return Ok(Default::default());".into()],
                _ => vec!["return Default::default();".into()],
            }
        }
        Type::Tuple(_) => vec!["return Default::default();".into()],
        _ => Vec::new(),
    }
}

impl Finder<'_> {
    fn add(&mut self, span: Span, what: String, edit: Edit) {
        let range = span.byte_range();
        self.found.push(Site { start: range.start, end: range.end, line: span.start().line, what, edit });
    }

    fn source(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        if block.stmts.is_empty() {
            return;
        }
        let at = block.brace_token.span.open().byte_range().end;
        for answer in empty_answers(&signature.output) {
            self.found.push(Site {
                start: at,
                end: at,
                line: signature.ident.span().start().line,
                what: format!("`{}` does nothing but `{answer}`", signature.ident),
                edit: Edit::Before(answer),
            });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}

    // Patterns are constants, too.
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_of_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // Text for developers is held to nothing.
        let is_debug = item
            .trait_
            .as_ref()
            .is_some_and(|(_, path, _)| path.segments.last().is_some_and(|segment| segment.ident == "Debug"));
        if !is_of_tests(&item.attrs) && !is_debug {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() && !is_of_tests(&item.attrs) && item.sig.ident != "main" {
            self.body(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_of_tests(&item.attrs) {
            self.body(&item.sig, &item.block);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block);
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_expr_repeat(&mut self, expr: &'ast syn::ExprRepeat) {
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_call(&mut self, expr: &'ast syn::ExprCall) {
        // How much room is made ahead changes nothing that a test could see.
        if !self.source(expr.func.span()).ends_with("with_capacity") {
            visit::visit_expr_call(self, expr);
        }
    }

    fn visit_expr_method_call(&mut self, expr: &'ast syn::ExprMethodCall) {
        if expr.method == "reserve" {
            self.visit_expr(&expr.receiver);
        } else {
            visit::visit_expr_method_call(self, expr);
        }
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        if !binds(&expr.cond) && !matches!(*expr.cond, Expr::Binary(_) | Expr::Unary(_)) {
            let what = format!("`if {}` is turned round", self.source(expr.cond.span()));
            self.add(expr.cond.span(), what, Edit::Opposite);
        }
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if !binds(&expr.left) && !binds(&expr.right) {
            let (left, right) = (self.source(expr.left.span()), self.source(expr.right.span()));
            let now = self.source(expr.op.span());
            let changes: Vec<(String, String)> = other_operator(&expr.op)
                .unwrap_or_default()
                .iter()
                .map(|other| (format!("`{now}` is `{other}`"), format!("{left} {other} {right}")))
                .collect();
            for (what, text) in changes {
                self.add(expr.span(), what, Edit::Instead(text));
            }
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if matches!(expr.op, UnOp::Not(_) | UnOp::Neg(_)) {
            let inner = self.source(expr.expr.span()).to_string();
            let what = format!("`{}` is left out", self.source(expr.op.span()));
            self.add(expr.span(), what, Edit::Instead(inner));
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_lit(&mut self, expr: &'ast syn::ExprLit) {
        let now = self.source(expr.span());
        let other = match &expr.lit {
            Lit::Bool(value) => (!value.value).to_string(),
            Lit::Int(value) => match value.base10_parse::<u128>() {
                Ok(number) => format!("{}{}", number + 1, value.suffix()),
                Err(_) => return,
            },
            Lit::Float(value) => match value.base10_parse::<f64>() {
                Ok(number) => format!("{:?}{}", number + 1.0, value.suffix()),
                Err(_) => return,
            },
            _ => return,
        };
        let what = format!("`{now}` is `{other}`");
        self.add(expr.span(), what, Edit::Instead(other));
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        if let Stmt::Expr(expr, Some(_)) = stmt {
            let does = matches!(
                expr,
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Await(_) | Expr::Try(_) | Expr::Assign(_)
            );
            if does {
                let text = self.source(stmt.span()).lines().next().unwrap_or_default().to_string();
                self.add(stmt.span(), format!("`{text}` is left out"), Edit::LeftOut);
            }
        }
        visit::visit_stmt(self, stmt);
    }
}
