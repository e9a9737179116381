import { card, field, form, hidden, linkButton, or, type Part, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'
import type { ListedProvider } from './provider-marks'

export interface ConfirmationView {
  readonly email: string
  readonly takesPassword: boolean
  readonly takesCode: boolean
  /** The passkey form; null if the account has no passkey for the confirmation. */
  readonly passkey: Part
  /** True if the app can mail a confirmation code. */
  readonly mailsCode: boolean
  /** True if the person requested a code. */
  readonly hasMailedCode: boolean
  readonly providers: readonly ListedProvider[]
  readonly formOf: Part
  readonly returnTo: string | null
  readonly cancel: string
  /** The link for people who have none of these credentials. */
  readonly signInAgain: string
}

/** Asks a logged-in person for one of the account's credentials: password, code, passkey or provider. */
export function confirmationPage(reader: Reader, state: FormState, view: ConfirmationView): Html {
  const { email, takesPassword, takesCode, passkey, mailsCode, hasMailedCode, providers, signInAgain } = view
  const ways = [
    takesPassword ? passwordForm(reader, state, view) : null,
    takesCode ? codeForm(reader, state, view) : null,
    mailsCode && hasMailedCode ? mailCodeForm(reader, state, view) : null,
  ].filter((way) => way !== null)
  const others = [
    passkey,
    mailsCode ? sendCodeForm(reader, view) : null,
    ...providers.map((provider) => providerForm(reader, view, provider)),
  ].filter((way) => way !== null)
  return card(
    html`<h1>${reader.text('confirm.title')}</h1>
<p class="lead">${reader.text('confirm.lead', { email })}</p>
`,
    problem(state),
    ...ways.flatMap((way, index) => (index === 0 ? [way] : [or(reader), way])),
    ways.length > 0 && others.length > 0 ? or(reader) : null,
    ...others,
    ways.length + others.length === 0
      ? html`<p class="note">${reader.text('confirm.nothing')}</p>${linkButton(signInAgain, reader.text('confirm.sign_in_again'))}`
      : null,
    html`<p class="below"><a href="${view.cancel}">${reader.text('confirm.cancel')}</a></p>
`,
  )
}

function passwordForm(reader: Reader, state: FormState, { email, takesCode, hasMailedCode, formOf, returnTo }: ConfirmationView): Html {
  return form({
    action: reader.href('/reauthenticate'),
    fields: [
      formOf,
      hidden('return_to', returnTo),
      // Password managers need the address to find the password.
      html`<input type="text" name="username" autocomplete="username" value="${email}" hidden readonly>`,
      field(reader, state, {
        name: 'password',
        label: reader.text('field.password'),
        type: 'password',
        autocomplete: 'current-password',
        isFirst: !hasMailedCode,
      }),
    ],
    button: reader.text(takesCode ? 'confirm.by_password' : 'confirm.button'),
  })
}

function codeForm(reader: Reader, state: FormState, { takesPassword, hasMailedCode, formOf, returnTo }: ConfirmationView): Html {
  return form({
    action: reader.href('/reauthenticate'),
    fields: [
      formOf,
      hidden('return_to', returnTo),
      field(reader, state, {
        name: 'code',
        label: reader.text('field.code'),
        hint: reader.text('confirm.code_hint'),
        autocomplete: 'one-time-code',
        isCode: true,
        isFirst: !takesPassword && !hasMailedCode,
      }),
    ],
    button: reader.text(takesPassword ? 'confirm.by_code' : 'confirm.button'),
  })
}

function mailCodeForm(reader: Reader, state: FormState, { email, formOf, returnTo }: ConfirmationView): Html {
  return form({
    action: reader.href('/reauthenticate', { by: 'email' }),
    fields: [
      formOf,
      hidden('return_to', returnTo),
      field(reader, state, {
        name: 'email_code',
        label: reader.text('confirm.mail_code'),
        hint: reader.text('confirm.mail_hint', { email }),
        autocomplete: 'one-time-code',
        isCode: true,
        isDigits: true,
        isFirst: true,
      }),
    ],
    button: reader.text('confirm.by_mail_code'),
  })
}

function sendCodeForm(reader: Reader, { formOf, returnTo, hasMailedCode }: ConfirmationView): Html {
  return form({
    action: reader.href('/reauthenticate'),
    fields: [formOf, hidden('return_to', returnTo)],
    button: reader.text(hasMailedCode ? 'confirm.send_again' : 'confirm.send_code'),
    name: ['send_code', '1'],
    look: 'second',
  })
}

function providerForm(reader: Reader, { formOf, returnTo }: ConfirmationView, { key, name, mark }: ListedProvider): Html {
  return form({
    action: reader.href('/reauthenticate'),
    fields: [formOf, hidden('return_to', returnTo), hidden('provider', key)],
    button: reader.text('confirm.by_provider', { provider: name }),
    mark,
    look: 'second',
  })
}
