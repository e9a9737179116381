import escapeHtml from 'escape-html'

/** Markup that is safe to put into markup. */
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
 * Markup with values in it: each is escaped, for text and for quoted attributes alike, unless it is markup already.
 * `null` is nothing. Always quote attributes.
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
