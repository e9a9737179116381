import { type Html, html } from '../http/html'
import { card, checkbox, field, form, hidden, linkButton, or, type Part, problem } from './elements'
import type { FormState } from './form-state'
import type { Reader } from './reader'

export interface LoginView {
  /** The ways to log in that have fields. Each way has its own form. */
  readonly forms: readonly Html[]
  readonly links: readonly Html[]
  /** The link to the sign-up page; null if nobody can sign up. */
  readonly signUp: string | null
  /** The account that is logged in already, and the link back to its pages. */
  readonly current: { readonly email: string; readonly back: string } | null
}

export function loginPage(reader: Reader, state: FormState, { forms, links, signUp, current }: LoginView): Html {
  return card(
    html`<h1>${reader.text('login.title')}</h1>
`,
    problem(state),
    current &&
      html`<p class="note">${reader.text('login.switch', { email: current.email })}</p>
<p class="below"><a href="${current.back}">${reader.text('login.back', { email: current.email })}</a></p>
`,
    forms.length + links.length === 0 ? html`<p class="lead">${reader.text('login.none')}</p>` : null,
    ...separated(reader, forms),
    forms.length > 0 && links.length > 0 ? or(reader) : null,
    links.length === 0 ? null : html`<div class="ways">${links}</div>`,
    signUp === null
      ? null
      : html`<p class="after">${reader.text('login.no_account')} <a href="${signUp}">${reader.text('login.sign_up')}</a></p>`,
  )
}

function separated(reader: Reader, forms: readonly Html[]): Part[] {
  return forms.flatMap((each, index) => (index === 0 ? [each] : [or(reader), each]))
}

/** Returns the form for email and password. `forgot` is null if the app cannot reset passwords. */
export function passwordLogin(
  reader: Reader,
  state: FormState,
  { returnTo, hasPasskeys, forgot }: { returnTo: string | null; hasPasskeys: boolean; forgot: string | null },
): Html {
  return form({
    action: reader.href('/login'),
    fields: [
      hidden('return_to', returnTo),
      field(reader, state, {
        name: 'email',
        label: reader.text('field.email'),
        type: 'email',
        autocomplete: userName(hasPasskeys),
        isFirst: true,
      }),
      field(reader, state, { name: 'password', label: reader.text('field.password'), type: 'password', autocomplete: 'current-password' }),
      forgot === null
        ? null
        : html`<p class="hint"><a href="${forgot}">${reader.text('login.forgot')}</a></p>
`,
      checkbox(state, { name: 'remember', label: reader.text('field.remember'), isChecked: true }),
    ],
    button: reader.text('login.button'),
  })
}

/** Returns the `autocomplete` value of the address field. A browser offers passkeys only in a field with the value `webauthn`. */
function userName(hasPasskeys: boolean): string {
  return hasPasskeys ? 'username webauthn' : 'username'
}

/** Returns the form that requests a mail to log in. `mails` is the content of the mail. */
export function emailLogin(
  reader: Reader,
  state: FormState,
  {
    returnTo,
    mails,
    hasPasskeys,
    isOnly,
    signsUp,
  }: { returnTo: string | null; mails: 'link' | 'code'; hasPasskeys: boolean; isOnly: boolean; signsUp: boolean },
): Html {
  const hint = signsUp
    ? reader.text('login.by_email_new')
    : isOnly
      ? null
      : reader.text(`login.by_${mails === 'code' ? 'code' : 'email'}_lead`)
  return form({
    action: reader.href('/email-login/request'),
    fields: [
      hidden('return_to', returnTo),
      field(reader, state, {
        name: 'email',
        id: isOnly ? 'email' : 'email-login',
        label: reader.text('field.email'),
        type: 'email',
        autocomplete: isOnly ? userName(hasPasskeys) : 'email',
        isFirst: isOnly,
        ...(hint !== null && { hint }),
      }),
    ],
    button: reader.text(mails === 'code' ? 'login.email_code' : 'login.email_link'),
    ...(!isOnly && { look: 'second' as const }),
  })
}

/**
 * Returns the login with a provider as a link. A form does not work here, because `form-action` blocks its redirect to the provider's site.
 */
export function providerLogin(reader: Reader, provider: { key: string; name: string }, returnTo: string | null): Html {
  const href = reader.href(`/oauth/${provider.key}/login`, { return_to: returnTo })
  return linkButton(href, reader.text('login.with_provider', { provider: provider.name }), 'second')
}
