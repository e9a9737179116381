import { card, checkbox, field, form, hidden, linkButton, or, problem } from '../http/html/elements'
import type { FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Reader } from '../http/html/reader'
import type { ListedProvider } from './provider-marks'

export interface LoginView {
  /** The form with the address. Null: nobody logs in by address. */
  readonly form: Html | null
  readonly links: readonly Html[]
  /** The link to the sign-up page; null if nobody can sign up. */
  readonly signUp: string | null
  /** The account that is logged in already, and the link back to its pages. */
  readonly current: { readonly email: string; readonly back: string } | null
}

export function loginPage(reader: Reader, state: FormState, { form, links, signUp, current }: LoginView): Html {
  return card(
    html`<h1>${reader.text('login.title')}</h1>
`,
    problem(state),
    current &&
      html`<p class="note">${reader.text('login.switch', { email: current.email })}</p>
<p class="below"><a href="${current.back}">${reader.text('login.back', { email: current.email })}</a></p>
`,
    form === null && links.length === 0 ? html`<p class="lead">${reader.text('login.none')}</p>` : null,
    form,
    form !== null && links.length > 0 ? or(reader) : null,
    links.length === 0 ? null : html`<div class="ways">${links}</div>`,
    signUp === null
      ? null
      : html`<p class="after">${reader.text('login.no_account')} <a href="${signUp}">${reader.text('login.sign_up')}</a></p>`,
  )
}

/** The ways to log in by the address field. */
export interface AddressLogin {
  readonly returnTo: string | null
  readonly hasPasskeys: boolean
  /** The link to the page for a forgotten password. Null: the form asks for no password. */
  readonly forgot: string | null
  /** What the mail of a login by email carries. Null: there is no login by email. */
  readonly mails: 'link' | 'code' | null
  /** True if a login by email also creates an account. */
  readonly signsUp: boolean
}

/** Returns the form with the address: one field for a password and for a mail. Each way has its own button. */
export function addressLogin(reader: Reader, state: FormState, view: AddressLogin): Html {
  const { returnTo, hasPasskeys, forgot, mails, signsUp } = view
  const takesPassword = forgot !== null
  const request = mails && { action: reader.href('/email-login/request'), label: reader.text(`login.email_${mails}`) }
  const hint = !mails
    ? null
    : signsUp
      ? 'login.by_email_new'
      : takesPassword
        ? (`login.by_${mails === 'code' ? 'code' : 'email'}_lead` as const)
        : null
  return form({
    action: takesPassword || !request ? reader.href('/login') : request.action,
    fields: [
      hidden('return_to', returnTo),
      field(reader, state, {
        name: 'email',
        label: reader.text('field.email'),
        type: 'email',
        // A browser offers passkeys only in a field with the value `webauthn`.
        autocomplete: hasPasskeys ? 'username webauthn' : 'username',
        isFirst: true,
        ...(hint && !takesPassword && { hint: reader.text(hint) }),
      }),
      ...(takesPassword ? passwordFields(reader, state, forgot) : []),
    ],
    button: takesPassword || !request ? reader.text('login.button') : request.label,
    after:
      takesPassword && request
        ? [
            html`<p class="or">${reader.text('login.or')}</p>
<button type="submit" class="second" formaction="${request.action}" formnovalidate aria-describedby="email-login-hint">${request.label}</button>
<p class="hint" id="email-login-hint">${hint && reader.text(hint)}</p>
`,
          ]
        : [],
  })
}

function passwordFields(reader: Reader, state: FormState, forgot: string): Html[] {
  return [
    field(reader, state, { name: 'password', label: reader.text('field.password'), type: 'password', autocomplete: 'current-password' }),
    html`<p class="hint"><a href="${forgot}">${reader.text('login.forgot')}</a></p>
`,
    checkbox(state, { name: 'remember', label: reader.text('field.remember'), isChecked: true }),
  ]
}

/**
 * Returns the login with a provider as a link. A form does not work here, because `form-action` blocks its redirect to the provider's site.
 */
export function providerLogin(reader: Reader, provider: ListedProvider, returnTo: string | null): Html {
  const href = reader.href(`/oauth/${provider.key}/login`, { return_to: returnTo })
  return linkButton(href, reader.text('login.with_provider', { provider: provider.name }), 'second', provider.mark)
}
