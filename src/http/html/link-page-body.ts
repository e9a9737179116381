import type { LinkPageName, PageInput } from '../../core/templates'
import { type TextKey, texts } from '../../core/texts/phrase-book'
import {
  card,
  emptyForm,
  type FormState,
  field,
  form,
  type Html,
  hidden,
  html,
  linkButton,
  type Part,
  problem as problemPart,
} from './elements'
import type { Reader } from './reader'

/** Also the page after a login with a provider. */
export function linkPageBody(reader: Reader, input: PageInput): Html {
  const { page, items, loginUrl, problem } = input
  const button = textOf(reader, page, 'button')
  return card(
    html`<h1>${reader.text(`link.${page}.title`)}</h1>
<p class="lead">${(button === null && problem) || reader.text(`link.${page}.lead`)}</p>
`,
    list(textOf(reader, page, 'list'), items),
    button === null ? loginLink(reader, loginUrl) : linkForm(reader, input, button),
  )
}

/** Only some of the pages have such a text. */
function textOf(reader: Reader, page: LinkPageName, part: 'list' | 'button'): string | null {
  const key = `link.${page}.${part}`
  return Object.hasOwn(texts['en-US'], key) ? reader.text(key as TextKey) : null // texts has the key
}

function list(name: string | null, items: readonly string[]): Part {
  if (items.length === 0) return null
  return html`${name === null ? null : html`<p class="list">${name}</p>`}<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>
`
}

function linkForm(reader: Reader, input: PageInput, button: string): Html {
  const { page, loginUrl, challenge, password, problem } = input
  const needsLogin = page === 'email_change' && problem !== null && password === null
  const state = stateOf(input)
  return form({
    ...(challenge && { action: challenge.action }),
    fields: [
      problemPart(state),
      ...(page === 'password_reset' ? newPasswords(reader, state) : []),
      ...(challenge ? [hidden('mfa_token', challenge.mfaToken), codeField(reader, state)] : []),
      password && oldPasswordInput(reader, state, password.canSkip),
    ],
    button,
    after: [needsLogin ? loginLink(reader, loginUrl, 'second') : null, password?.canSkip ? forgotButton(reader) : null],
  })
}

function stateOf({ page, challenge, password, problem }: PageInput): FormState {
  if (problem === null) return emptyForm
  const name = page === 'password_reset' ? 'new_password' : challenge ? 'code' : password ? 'password' : null
  return name === null ? { ...emptyForm, problem } : { ...emptyForm, faults: { [name]: problem } }
}

function newPasswords(reader: Reader, state: FormState): Html[] {
  const secret = { type: 'password', autocomplete: 'new-password' } as const
  return [
    field(reader, state, { ...secret, name: 'new_password', label: reader.text('link.new_password'), isFirst: true }),
    field(reader, state, { ...secret, name: 'confirm_password', label: reader.text('link.confirm_password') }),
  ]
}

function codeField(reader: Reader, state: FormState): Html {
  return field(reader, state, {
    name: 'code',
    label: reader.text('field.code'),
    autocomplete: 'one-time-code',
    isCode: true,
    isFirst: true,
  })
}

function loginLink(reader: Reader, loginUrl: string | null, look: 'first' | 'second' = 'first'): Part {
  return loginUrl === null ? null : linkButton(loginUrl, reader.text('link.log_in'), look)
}

/** The hint tells people whose account has the password of the sign-up. */
export function oldPasswordInput(reader: Reader, state: FormState, isOfSignup: boolean): Html {
  return field(reader, state, {
    name: 'password',
    label: reader.text('link.password'),
    type: 'password',
    autocomplete: 'current-password',
    isFirst: true,
    ...(isOfSignup && { hint: reader.text('link.chosen_at_signup') }),
  })
}

/** The second button of the form, because the Enter key presses the first. */
export function forgotButton(reader: Reader): Html {
  return html`<button type="submit" name="forgot" value="1" class="second" formnovalidate>${reader.text('link.forgot')}</button>
`
}
