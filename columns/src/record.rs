//! Rows as Rust structs.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::data_type::DataType;
use parquet::schema::types::{Type, TypePtr};

use crate::column::{AnyColumn, Column};
use crate::value::Value;

/// How many values a cell has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    Required,
    /// One or none.
    Optional,
    /// Any number.
    List,
    /// Any number, or nothing, which is not the same as an empty list.
    OptionalList,
}

impl Shape {
    /// Definition level of a value.
    pub(crate) fn definition_max(self) -> i16 {
        match self {
            Self::Required => 0,
            Self::Optional | Self::List => 1,
            Self::OptionalList => 2,
        }
    }
}

/// A type that a field of a record can have.
pub trait Field: Sized {
    /// The type of its values.
    type Value: Value;
    /// How many it has.
    const SHAPE: Shape;
    /// Adds it to its column.
    fn store(self, column: &mut Column<Self::Value>);
    /// Takes the next one from its column.
    fn load(column: &mut Column<Self::Value>) -> Result<Self, &'static str>;
}

/// The column of a field.
pub type ColumnOf<F> = Column<<F as Field>::Value>;

impl<V: Value> Field for V {
    type Value = V;
    const SHAPE: Shape = Shape::Required;
    fn store(self, column: &mut Column<V>) {
        column.push(self);
    }
    fn load(column: &mut Column<V>) -> Result<Self, &'static str> {
        column.next_value()
    }
}

impl<V: Value> Field for Option<V> {
    type Value = V;
    const SHAPE: Shape = Shape::Optional;
    fn store(self, column: &mut Column<V>) {
        column.push_option(self);
    }
    fn load(column: &mut Column<V>) -> Result<Self, &'static str> {
        column.next_option()
    }
}

impl<V: Value> Field for Vec<V> {
    type Value = V;
    const SHAPE: Shape = Shape::List;
    fn store(self, column: &mut Column<V>) {
        column.push_list(Self::SHAPE, Some(self));
    }
    fn load(column: &mut Column<V>) -> Result<Self, &'static str> {
        Ok(column.next_list(Self::SHAPE)?.unwrap_or_default())
    }
}

impl<V: Value> Field for Option<Vec<V>> {
    type Value = V;
    const SHAPE: Shape = Shape::OptionalList;
    fn store(self, column: &mut Column<V>) {
        column.push_list(Self::SHAPE, self);
    }
    fn load(column: &mut Column<V>) -> Result<Self, &'static str> {
        column.next_list(Self::SHAPE)
    }
}

/// A row of a table. [`record!`](crate::record!) declares one.
pub trait Record: Sized {
    /// Name and version of the table's schema, such as `rareplay.events/1`.
    const SCHEMA: &'static str;
    /// A [`Column`] for each field.
    type Columns: Default + Send;
    /// The columns' names and types.
    fn types() -> Vec<TypePtr>;
    /// The columns, in the order of [`Record::types`].
    fn each(columns: &mut Self::Columns) -> Vec<&mut dyn AnyColumn>;
    /// Adds a row.
    fn store(self, columns: &mut Self::Columns);
    /// Takes the next row, or says which column has no value for it and why.
    fn load(columns: &mut Self::Columns) -> Result<Self, (&'static str, &'static str)>;
}

/// Declares a struct and the table whose rows it is.
///
/// The schema's name and version come first. Fields of types that implement [`Field`] are columns.
#[macro_export]
macro_rules! record {
    (
        $schema:expr;
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $( $(#[$field_meta])* $field_vis $field: $type, )*
        }

        const _: () = {
            /// A column for each field.
            #[derive(Default)]
            pub struct Columns {
                $( $field: $crate::ColumnOf<$type>, )*
            }

            impl $crate::Record for $name {
                const SCHEMA: &'static str = $schema;
                type Columns = Columns;

                fn types() -> ::std::vec::Vec<$crate::TypePtr> {
                    ::std::vec![ $( $crate::column_type::<$type>(stringify!($field)), )* ]
                }

                fn each(columns: &mut Columns) -> ::std::vec::Vec<&mut dyn $crate::AnyColumn> {
                    ::std::vec![ $( &mut columns.$field, )* ]
                }

                fn store(self, columns: &mut Columns) {
                    $( $crate::Field::store(self.$field, &mut columns.$field); )*
                }

                fn load(
                    columns: &mut Columns,
                ) -> ::std::result::Result<Self, (&'static str, &'static str)> {
                    ::std::result::Result::Ok(Self {
                        $( $field: $crate::Field::load(&mut columns.$field)
                            .map_err(|found| (stringify!($field), found))?, )*
                    })
                }
            }
        };
    };
}

/// The type of the column that the field `name` is.
pub fn column_type<F: Field>(name: &str) -> TypePtr {
    let leaf = |name, repetition| {
        let physical = <F::Value as Value>::Physical::get_physical_type();
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(F::Value::logical())
            .build()
    };
    let list = |repetition| {
        let element = leaf("element", Repetition::REQUIRED)?;
        let repeated = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(element)])
            .build()?;
        Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_converted_type(ConvertedType::LIST)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(repeated)])
            .build()
    };
    let built = match F::SHAPE {
        Shape::Required => leaf(name, Repetition::REQUIRED),
        Shape::Optional => leaf(name, Repetition::OPTIONAL),
        Shape::List => list(Repetition::REQUIRED),
        Shape::OptionalList => list(Repetition::OPTIONAL),
    };
    Arc::new(built.expect("names and types that Parquet has"))
}
