import escapeHtml from 'escape-html'

/** Escaped markup. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }

  toString(): string {
    return this.markup
  }
}

type Part = Html | string | number | null | readonly (Html | string)[]

/**
 * Returns markup that contains values. The function escapes each value for text and for quoted attributes. A value of type `Html` stays
 * unchanged. `null` becomes an empty text. Always quote attributes.
 */
export function html(literals: TemplateStringsArray, ...values: readonly Part[]): Html {
  let [markup = '', ...rest] = literals
  for (const [index, literal] of rest.entries()) markup += markupOf(values[index] ?? null) + literal
  return new Html(markup)
}

function markupOf(value: Part): string {
  if (value === null) return ''
  if (value instanceof Html) return value.markup
  return typeof value === 'object' ? value.map(markupOf).join('') : escapeHtml(String(value))
}
