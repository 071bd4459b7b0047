//! A linear program solved to full precision, with the duals and whether they are unique.
//!
//! The interior-point solver gives a point inside the optimal face and says which rows are tight
//! on all of that face. One elimination over those rows then removes the solver's tolerance from
//! the answer, and its free columns tell what the optimum leaves open.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT,
};

/// Scaled quantities closer than this are the same.
pub(crate) const TOLERANCE: f64 = 1e-9;

/// Solves before giving up; each resolves values some four powers of ten smaller.
const PASSES: usize = 4;

/// `coefficients · x <= bound`, or `=` where `equality`.
#[derive(Clone, Debug)]
pub(crate) struct LinearRow {
    pub coefficients: Vec<f64>,
    pub bound: f64,
    pub equality: bool,
}

/// What came of maximising.
#[derive(Debug)]
pub(crate) enum Outcome {
    Optimal(Optimum),
    /// The rows (by index) that exclude each other.
    Infeasible(Vec<usize>),
    /// The column that can grow without end.
    Unbounded(usize),
    Failed(String),
}

/// A point of the optimal face, and the price of each row.
#[derive(Debug)]
pub(crate) struct Optimum {
    pub x: Vec<f64>,
    /// Whether all optima agree in this column.
    pub x_unique: Vec<bool>,
    /// Gain of the objective per unit of the row's bound.
    pub price: Vec<f64>,
    /// Whether all dual optima agree in this row.
    pub price_unique: Vec<bool>,
}

/// Maximises `objective · x` over `x >= 0` and `rows`.
///
/// The caller scales the columns so that useful values lie near one; rows are scaled here.
pub(crate) fn maximise(objective: &[f64], rows: &[LinearRow]) -> Outcome {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let objective_scale = match largest(objective) {
        0.0 => 1.0,
        most => most,
    };
    let objective: Vec<f64> = objective.iter().map(|value| value / objective_scale).collect();
    let mut row_scale = Vec::with_capacity(rows.len());
    let mut scaled = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let scale = largest(&row.coefficients);
        if scale == 0.0 && (row.bound < 0.0 || row.equality && row.bound != 0.0) {
            return Outcome::Infeasible(vec![index]);
        }
        let scale = if scale == 0.0 { 1.0 } else { scale };
        row_scale.push(scale);
        scaled.push(LinearRow {
            coefficients: row.coefficients.iter().map(|value| value / scale).collect(),
            bound: row.bound / scale,
            equality: row.equality,
        });
    }
    let mut face =
        Face { held: rows.iter().map(|row| row.equality).collect(), absent: vec![false; objective.len()] };
    let mut goal = objective.clone();
    let mut status = SolverStatus::Unsolved;
    for pass in 0..PASSES {
        let interior = interior_point(&goal, &scaled, &face);
        status = interior.status;
        if pass == 0
            && let Some(outcome) = no_optimum(&interior, rows.len())
        {
            return match outcome {
                Outcome::Infeasible(rows) => Outcome::Infeasible(only_needed(&scaled, rows, objective.len())),
                other => other,
            };
        }
        if let Some(mut optimum) = polish(&objective, &scaled, &face, &interior, pass == 0) {
            for (price, scale) in optimum.price.iter_mut().zip(&row_scale) {
                *price *= objective_scale / scale;
            }
            return Outcome::Optimal(optimum);
        }
        // Values far below the largest drown in the solver's tolerance. On the face that the large
        // ones fix, the multipliers of that face can be taken from the objective without moving
        // its optimum, and what is left grows to full size.
        let narrower = face.narrow(&interior);
        for (column, goal) in goal.iter_mut().enumerate() {
            let held = (0..rows.len()).filter(|&row| face.held[row]);
            let gone: f64 =
                held.map(|row| scaled[row].coefficients[column] * interior.multipliers[row]).sum();
            *goal = if face.absent[column] { 0.0 } else { *goal - gone };
        }
        let rest = largest(&goal);
        if rest == 0.0 || !narrower && rest > 0.1 {
            break;
        }
        goal.iter_mut().for_each(|value| *value /= rest);
    }
    Outcome::Failed(format!("{status:?}"))
}

/// Rows taken to be tight and columns taken to be zero at every optimum.
struct Face {
    held: Vec<bool>,
    absent: Vec<bool>,
}

impl Face {
    /// Adds what an interior point shows beyond doubt; false where that is nothing new.
    fn narrow(&mut self, interior: &Interior) -> bool {
        let sure = |index: usize| {
            let multiplier = interior.multipliers[index];
            multiplier > 1e-4 && interior.slacks[index] < 1e-4 * multiplier
        };
        let mut new = false;
        for (index, fixed) in self.held.iter_mut().chain(&mut self.absent).enumerate() {
            if !*fixed && sure(index) {
                (*fixed, new) = (true, true);
            }
        }
        new
    }
}

/// Whether a point that no row allows was asked for.
fn excluded(status: SolverStatus) -> bool {
    matches!(status, SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible)
}

/// Of rows that exclude each other, so many that none can be left out: a certificate may carry others,
/// and relaxing one of those would help nobody.
fn only_needed(rows: &[LinearRow], mut excluding: Vec<usize>, columns: usize) -> Vec<usize> {
    let mut at = 0;
    while at < excluding.len() {
        let others = excluding.iter().enumerate().filter(|(position, _)| *position != at);
        let others: Vec<LinearRow> = others.map(|(_, &row)| rows[row].clone()).collect();
        let held = others.iter().map(|row| row.equality).collect();
        let face = Face { held, absent: vec![false; columns] };
        if !others.is_empty() && excluded(interior_point(&vec![0.0; columns], &others, &face).status) {
            excluding.remove(at);
        } else {
            at += 1;
        }
    }
    excluding
}

fn no_optimum(interior: &Interior, rows: usize) -> Option<Outcome> {
    match interior.status {
        status if excluded(status) => {
            let multipliers = &interior.multipliers[..rows];
            let most = multipliers.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let tight = (0..rows).filter(|&row| multipliers[row].abs() > 1e-6 * most);
            Some(Outcome::Infeasible(tight.collect()))
        }
        SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => {
            let ray = &interior.x;
            let column = (0..ray.len()).max_by(|&a, &b| ray[a].total_cmp(&ray[b]).then(b.cmp(&a)));
            Some(Outcome::Unbounded(column.unwrap_or(0)))
        }
        _ => None,
    }
}

struct Interior {
    status: SolverStatus,
    x: Vec<f64>,
    /// One for each row, then one for each column's `x >= 0`.
    multipliers: Vec<f64>,
    slacks: Vec<f64>,
}

fn interior_point(objective: &[f64], rows: &[LinearRow], face: &Face) -> Interior {
    let columns = objective.len();
    let is_equal = |row: usize| face.held[row];
    // The solver wants one block per cone, so equalities go first.
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| !is_equal(row));
    let equalities = order.iter().filter(|&&row| is_equal(row)).count();
    let (mut starts, mut row_numbers, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in 0..columns {
        for (position, &row) in order.iter().enumerate() {
            if rows[row].coefficients[column] != 0.0 && !face.absent[column] {
                row_numbers.push(position);
                values.push(rows[row].coefficients[column]);
            }
        }
        row_numbers.push(rows.len() + column);
        values.push(-1.0);
        starts.push(values.len());
    }
    let height = rows.len() + columns;
    let matrix = CscMatrix::new(height, columns, starts, row_numbers, values);
    let mut bounds: Vec<f64> = order.iter().map(|&row| rows[row].bound).collect();
    bounds.resize(height, 0.0);
    let cost: Vec<f64> = objective.iter().map(|value| -value).collect();
    let cones = [ZeroConeT(equalities), NonnegativeConeT(height - equalities)];
    let cones = if equalities == 0 { &cones[1..] } else { &cones[..] };
    let settings = DefaultSettingsBuilder::default()
        .verbose(false)
        .tol_gap_abs(1e-12)
        .tol_gap_rel(1e-12)
        .tol_feas(1e-12)
        .build()
        .expect("constant settings are valid");
    let quadratic = CscMatrix::zeros((columns, columns));
    let mut solver = DefaultSolver::new(&quadratic, &cost, &matrix, &bounds, cones, settings)
        .expect("dimensions agree by construction");
    solver.solve();
    let solution = solver.solution;
    let mut multipliers = solution.z.clone();
    let mut slacks = solution.s.clone();
    for (position, &row) in order.iter().enumerate() {
        multipliers[row] = solution.z[position];
        slacks[row] = solution.s[position];
    }
    Interior { status: solution.status, x: solution.x, multipliers, slacks }
}

/// The point and multipliers exactly on the optimal face; `None` where the face was misjudged.
fn polish(
    objective: &[f64],
    rows: &[LinearRow],
    face: &Face,
    interior: &Interior,
    is_whole_objective: bool,
) -> Option<Optimum> {
    let mut x = interior.x.clone();
    let tends_to_zero = |index: usize| interior.multipliers[index] > interior.slacks[index];
    let tight: Vec<usize> = (0..rows.len()).filter(|&row| face.held[row] || tends_to_zero(row)).collect();
    let free: Vec<usize> =
        (0..x.len()).filter(|&column| !face.absent[column] && !tends_to_zero(rows.len() + column)).collect();
    for (column, value) in x.iter_mut().enumerate() {
        if !free.contains(&column) {
            *value = 0.0;
        }
    }
    let used = |row: usize, x: &[f64]| dot(&rows[row].coefficients, x);

    let equations =
        tight.iter().map(|&row| free.iter().map(|&column| rows[row].coefficients[column]).collect());
    let residuals = tight.iter().map(|&row| rows[row].bound - used(row, &x)).collect();
    let step = eliminate(equations.collect(), residuals, free.len())?;
    let mut x_unique = vec![true; x.len()];
    for (position, &column) in free.iter().enumerate() {
        x[column] += step.values[position];
        x_unique[column] = step.unique[position];
    }

    let mut price = vec![0.0; rows.len()];
    if is_whole_objective {
        // Where prices are not unique, those of the interior point share the value evenly.
        for &row in &tight {
            price[row] = interior.multipliers[row];
        }
    }
    let reduced = |column: usize, price: &[f64]| {
        objective[column]
            - rows.iter().zip(price).map(|(row, price)| row.coefficients[column] * price).sum::<f64>()
    };
    let equations =
        free.iter().map(|&column| tight.iter().map(|&row| rows[row].coefficients[column]).collect());
    let residuals = free.iter().map(|&column| reduced(column, &price)).collect();
    let step = eliminate(equations.collect(), residuals, tight.len())?;
    let mut price_unique = vec![true; rows.len()];
    for (position, &row) in tight.iter().enumerate() {
        price[row] += step.values[position];
        price_unique[row] = step.unique[position];
    }

    // Optimality is checked rather than believed: feasible, dual feasible, and tight where priced.
    let slack = TOLERANCE / 10.0;
    let feasible = x.iter().all(|&value| value >= -slack)
        && rows.iter().all(|row| {
            let excess = dot(&row.coefficients, &x) - row.bound;
            let size = row.bound.abs().max(1e-3);
            excess <= slack * size && (!row.equality || excess >= -slack * size)
        });
    let priced = rows.iter().zip(&price).all(|(row, &price)| row.equality || price >= -slack);
    let no_better = (0..x.len()).all(|column| {
        let terms = rows.iter().zip(&price).map(|(row, price)| (row.coefficients[column] * price).abs());
        let rounding = 1e-14 * (1.0 + terms.sum::<f64>());
        reduced(column, &price) <= rounding.max(slack * objective[column].abs())
    });
    if !(feasible && priced && no_better) {
        return None;
    }
    x.iter_mut().for_each(|value| *value = value.max(0.0));
    for (row, price) in rows.iter().zip(&mut price) {
        if !row.equality {
            *price = price.max(0.0);
        }
    }
    Some(Optimum { x, x_unique, price, price_unique })
}

struct Elimination {
    /// A solution with zero in the columns that the equations leave open.
    values: Vec<f64>,
    /// Whether all solutions agree in this column.
    unique: Vec<bool>,
}

/// Solves `equations · values = right` by Gauss-Jordan with full pivoting; `None` where inconsistent.
fn eliminate(mut equations: Vec<Vec<f64>>, mut right: Vec<f64>, columns: usize) -> Option<Elimination> {
    let mut pivots: Vec<(usize, usize)> = Vec::new();
    let mut is_pivot = vec![false; columns];
    for next in 0..equations.len().min(columns) {
        let (mut best, mut at) = (0.0, (0, 0));
        for (row, equation) in equations.iter().enumerate().skip(next) {
            for column in (0..columns).filter(|&column| !is_pivot[column]) {
                if equation[column].abs() > best {
                    (best, at) = (equation[column].abs(), (row, column));
                }
            }
        }
        if best < TOLERANCE {
            break;
        }
        equations.swap(next, at.0);
        right.swap(next, at.0);
        let column = at.1;
        let divisor = equations[next][column];
        equations[next].iter_mut().for_each(|value| *value /= divisor);
        right[next] /= divisor;
        let pivot_row = equations[next].clone();
        let pivot_right = right[next];
        for row in (0..equations.len()).filter(|&row| row != next) {
            let factor = equations[row][column];
            if factor != 0.0 {
                for (value, pivot) in equations[row].iter_mut().zip(&pivot_row) {
                    *value -= factor * pivot;
                }
                right[row] -= factor * pivot_right;
            }
        }
        is_pivot[column] = true;
        pivots.push((next, column));
    }
    if right.iter().skip(pivots.len()).any(|rest| rest.abs() > TOLERANCE) {
        return None;
    }
    let mut values = vec![0.0; columns];
    let mut unique = vec![false; columns];
    for &(row, column) in &pivots {
        values[column] = right[row];
        unique[column] = (0..columns).all(|other| is_pivot[other] || equations[row][other].abs() < TOLERANCE);
    }
    Some(Elimination { values, unique })
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(coefficients: &[f64], bound: f64) -> LinearRow {
        LinearRow { coefficients: coefficients.to_vec(), bound, equality: false }
    }

    fn equal(coefficients: &[f64], bound: f64) -> LinearRow {
        LinearRow { equality: true, ..row(coefficients, bound) }
    }

    fn optimum(objective: &[f64], rows: &[LinearRow]) -> Optimum {
        match maximise(objective, rows) {
            Outcome::Optimal(optimum) => optimum,
            other => panic!("{other:?}"),
        }
    }

    fn near(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(close),
            "{found:?}, not {expected:?}"
        );
    }

    #[test]
    fn a_row_of_zeros_excludes_only_what_it_cannot_hold() {
        let with = |zeros: LinearRow| maximise(&[1.0], &[row(&[1.0], 2.0), zeros]);
        for fits in [row(&[0.0], 0.0), row(&[0.0], 3.0), equal(&[0.0], 0.0)] {
            let Outcome::Optimal(optimum) = with(fits.clone()) else { panic!("{fits:?}") };
            near(&optimum.x, &[2.0]);
            // More of nothing is worth nothing, so any price of that row is as true.
            near(&optimum.price[..1], &[1.0]);
        }
        for excludes in [row(&[0.0], -1e-300), equal(&[0.0], 1e-300), equal(&[0.0], -1.0)] {
            assert!(matches!(with(excludes), Outcome::Infeasible(rows) if rows == [1]));
        }
    }

    #[test]
    fn what_has_no_optimum_says_why() {
        let nothing =
            maximise(&[1.0, 1.0], &[row(&[1.0, 0.0], 2.0), row(&[-1.0, 0.0], -3.0), row(&[0.0, 1.0], 1.0)]);
        let Outcome::Infeasible(rows) = nothing else { panic!("{nothing:?}") };
        assert_eq!(rows, [0, 1]);
        let endless = maximise(&[1.0, 1.0, 0.0], &[row(&[1.0, 0.0, 1.0], 2.0)]);
        assert!(matches!(endless, Outcome::Unbounded(1)), "{endless:?}");
    }

    #[test]
    fn an_objective_of_nothing_is_met_by_anything() {
        let optimum = optimum(&[0.0, 0.0], &[row(&[1.0, 2.0], 4.0)]);
        near(&optimum.price, &[0.0]);
        assert!(optimum.x.iter().all(|x| *x >= 0.0));
    }

    #[test]
    fn points_and_prices_are_exact_whatever_the_size_of_objective_and_rows() {
        for size in [1e-12, 1.0, 1e12] {
            // At most 3 of the first, 4 of the second and 5 of both.
            let rows = [row(&[1.0, 0.0], 3.0), row(&[0.0, 1.0], 4.0), row(&[size, size], 5.0 * size)];
            let optimum = optimum(&[2.0 * size, 3.0 * size], &rows);
            near(&optimum.x, &[1.0, 4.0]);
            assert_eq!((optimum.x_unique, optimum.price_unique), (vec![true; 2], vec![true; 3]));
            near(&[optimum.price[0] / size, optimum.price[1] / size, optimum.price[2]], &[0.0, 1.0, 2.0]);
        }
        // A loss has to be taken where a row demands it, and its price is what less of it brings.
        let optimum = optimum(&[-2.0, -1.0], &[equal(&[1.0, 1.0], 4.0), row(&[0.0, 1.0], 3.0)]);
        near(&optimum.x, &[1.0, 3.0]);
        near(&optimum.price, &[-2.0, 1.0]);
    }

    /// What a solver might claim of two columns with a row each: which rows are tight, which columns zero.
    fn claimed(tight: [bool; 2], zero: [bool; 2]) -> Interior {
        let all = [tight[0], tight[1], zero[0], zero[1]];
        Interior {
            status: SolverStatus::Solved,
            x: zero.map(|zero| if zero { 0.0 } else { 1.0 }).to_vec(),
            multipliers: all.map(|held| if held { 1.0 } else { 1e-9 }).to_vec(),
            slacks: all.map(|held| if held { 1e-9 } else { 1.0 }).to_vec(),
        }
    }

    #[test]
    fn a_claim_is_checked_before_it_is_believed() {
        let rows = [row(&[1.0, 0.0], 1.0), row(&[0.0, 1.0], 1.0)];
        let open = || Face { held: vec![false; 2], absent: vec![false; 2] };
        let accepts = |objective: &[f64], claim: &Interior| polish(objective, &rows, &open(), claim, true);
        let right = accepts(&[1.0, 1.0], &claimed([true, true], [false, false])).expect("it is right");
        near(&right.x, &[1.0, 1.0]);
        near(&right.price, &[1.0, 1.0]);
        // Feasible, and worse than the best.
        assert!(accepts(&[1.0, 1.0], &claimed([true, false], [false, true])).is_none());
        assert!(accepts(&[1.0, 1.0], &claimed([false, true], [true, false])).is_none());
        // Better, and not feasible: the second column is put above its bound.
        let mut beyond = claimed([true, false], [false, false]);
        beyond.x[1] = 2.0;
        assert!(accepts(&[1.0, 0.0], &beyond).is_none());
        beyond.x[1] = -0.5;
        assert!(accepts(&[1.0, 0.0], &beyond).is_none());
        beyond.x[1] = 0.5;
        let any = accepts(&[1.0, 0.0], &beyond).expect("any second value is as good");
        near(&any.x, &[1.0, 0.5]);
        assert_eq!(any.x_unique, [true, false]);
        // A row that is held although a loss would be spared without it has a price below zero.
        assert!(accepts(&[1.0, -1.0], &claimed([true, true], [false, false])).is_none());
        // Rows that cannot be tight together.
        let both = [row(&[1.0, 0.0], 1.0), row(&[1.0, 0.0], 2.0)];
        assert!(polish(&[1.0, 0.0], &both, &open(), &claimed([true, true], [false, true]), true).is_none());
    }

    #[test]
    fn a_face_grows_by_what_is_beyond_doubt() {
        let mut face = Face { held: vec![false; 2], absent: vec![false; 2] };
        assert!(face.narrow(&claimed([true, false], [false, true])));
        assert_eq!((face.held.clone(), face.absent.clone()), (vec![true, false], vec![false, true]));
        assert!(!face.narrow(&claimed([true, false], [false, true])), "nothing is new");
        let mut doubtful = claimed([false, true], [true, false]);
        (doubtful.multipliers[1], doubtful.slacks[1]) = (1e-5, 1e-12);
        (doubtful.multipliers[2], doubtful.slacks[2]) = (1.0, 1e-3);
        assert!(!face.narrow(&doubtful));
    }

    #[test]
    fn an_elimination_tells_what_is_open_and_what_contradicts() {
        let solved = eliminate(vec![vec![0.0, 2.0], vec![4.0, 2.0]], vec![6.0, 10.0], 2).expect("it has one");
        near(&solved.values, &[1.0, 3.0]);
        assert_eq!(solved.unique, [true, true]);
        let open =
            eliminate(vec![vec![1.0, 2.0, 0.0], vec![0.0, 0.0, 5.0]], vec![4.0, 10.0], 3).expect("many");
        near(&[open.values[0] + 2.0 * open.values[1], open.values[2]], &[4.0, 2.0]);
        assert_eq!(open.unique, [false, false, true]);
        let twice = eliminate(vec![vec![1.0, 1.0], vec![2.0, 2.0]], vec![3.0, 6.0], 2).expect("it agrees");
        near(&[twice.values[0] + twice.values[1]], &[3.0]);
        assert_eq!(twice.unique, [false, false]);
        assert!(eliminate(vec![vec![1.0, 1.0], vec![2.0, 2.0]], vec![3.0, 7.0], 2).is_none());
        assert!(eliminate(vec![vec![0.0]], vec![1.0], 1).is_none());
        let nothing = eliminate(vec![vec![0.0]], vec![0.0], 1).expect("it agrees");
        assert_eq!((nothing.values, nothing.unique), (vec![0.0], vec![false]));
    }
}
