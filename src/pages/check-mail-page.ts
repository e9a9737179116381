import type { TextKey } from '../core/texts/texts'
import { card, field, form, type Part, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import { forgotButton, oldPasswordInput } from '../http/html/old-password'
import type { Reader } from '../http/html/reader'

export interface CheckMailView {
  readonly email: string
  /** The text that explains why a mail may not arrive. The text does not reveal whether a mail was sent. */
  readonly lead: TextKey
  /** The content of the mail. */
  readonly holds: 'link' | 'code' | 'both'
  /** The link back to the form, with the address. */
  readonly back: string
  /** The address of the account that is logged in already. A login by code replaces the session of that account. */
  readonly replaces: string | null
}

const instructions = { link: 'check_mail.open_link', code: 'check_mail.use_code', both: 'check_mail.use_either' } as const

/** Returns the same page whether the address has an account or not. */
export function checkMailPage(reader: Reader, state: FormState, { email, lead, holds, back, replaces }: CheckMailView): Html {
  return card(
    html`<h1>${reader.text('check_mail.title')}</h1>
<p class="lead">${reader.text(lead)}<br><strong>${email}</strong></p>
<p>${reader.text(instructions[holds])}</p>
`,
    problem(state),
    replaces === null ? null : html`<p class="note">${reader.text('link.replaces', { email: replaces })}</p>`,
    holds === 'link' ? null : codeForm(reader, state),
    html`<p class="after">${reader.text('check_mail.hint')}</p>
`,
    form({ fields: [], button: reader.text('check_mail.again'), look: 'second' }),
    html`<p class="below"><a href="${back}">${reader.text('check_mail.other')}</a></p>
`,
  )
}

/**
 * Returns the form for the code. If the code was correct but nobody has verified the address before, the form also asks for the password.
 */
function codeForm(reader: Reader, state: FormState): Part {
  const asksPassword = state.faults['password'] !== undefined
  return form({
    fields: [
      field(reader, state, {
        name: 'code',
        label: reader.text('field.code'),
        hint: reader.text('check_mail.code_hint'),
        autocomplete: 'one-time-code',
        isCode: true,
        isDigits: true,
        isFirst: true,
        keepsCode: asksPassword,
      }),
      asksPassword ? oldPasswordInput(reader, state, true) : null,
    ],
    button: reader.text('login.button'),
    after: [asksPassword ? forgotButton(reader) : null],
  })
}
