import { card, field, form, type Part, problem } from '../../http/html/elements'
import type { FormState } from '../../http/html/form-state'
import { type Html, html } from '../../http/html/html'
import type { Reader } from '../../http/html/reader'

export function profilePage(reader: Reader, state: FormState, { name, formOf }: { name: string | null; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text('profile.title')}</h1>
`,
    problem(state),
    form({
      fields: [
        formOf,
        field(reader, state, {
          name: 'name',
          label: reader.text('account.name'),
          autocomplete: 'name',
          value: name ?? '',
          isOptional: true,
          isFirst: true,
        }),
      ],
      button: reader.text('profile.button'),
    }),
  )
}
