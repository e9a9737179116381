import { hasPasswords } from '../core/config/every-setting'
import type { TextKey } from '../core/texts/phrase-book'
import {
  card,
  checkbox,
  emptyForm,
  type FormState,
  field,
  form,
  type Html,
  hidden,
  html,
  linkButton,
  notice,
  or,
  type Part,
  problem,
} from '../http/html/document'
import { passkeyForm } from '../http/html/passkey-form'
import type { Reader } from '../http/html/reader'
import type { Page } from '../http/html/send-page'
import { queryParameter } from '../http/locale'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { readInvitation } from '../invitations/carried'
import { passkeyLoginOptions } from '../passkeys/passkey-login'
import { takeNotice } from '../sessions/cookies'
import { connections } from './account/connections'
import { afterLogin } from './after-login'
import { captchaOfForm, captchaWidgets } from './captcha'
import { requireFields } from './form-fault'
import { putAsideNote } from './invitation-note'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { type ListedProvider, listedProvider } from './provider-marks'
import { findSignedIn } from './signed-in'

export function loginPageRoutes(site: PageSite): Route[] {
  const takesPassword = hasPasswords(site.ctx.settings)
  return pageRouteSets(site, {
    path: '/login',
    summary: 'The sign-in page',
    sharesPath: takesPassword,
    sentences: { UNAUTHORIZED: 'login.wrong' },
    show: (visit, state) => showLogin(visit, state, 'password'),
    ...(takesPassword && { post: signIn }),
  })
}

/** @param sent the form to which `state` belongs */
export async function showLogin(visit: Visit, state: FormState, sent: 'password' | 'email' | 'passkey'): Promise<Page | GoOn> {
  const { ctx, site, req, res, reader, returnTo } = visit
  const current = await findSignedIn(site, req, res)
  // A logged-in person sees it too: to switch accounts, after a failed sign-in at a provider (`error`), and after a form.
  const isSwitching = queryParameter(req, 'switch', 1) === '1' || queryParameter(req, 'error', 64) !== null || req.method === 'POST'
  const home = returnTo === null ? reader.href('/account') : locationOf(returnTo)
  const failure = queryParameter(req, 'error', 64)
  // The person wanted to connect a provider, whose callback redirected to the login page.
  if (current && failure !== null && connections.isThere(ctx)) return { to: reader.href(connections.path, { error: failure }) }
  if (current && !isSwitching) return { to: home }
  const word = takeNotice(ctx, req, res)
  const { localAccountsEnabled, signupEnabled, emailLogin, passkeysEnabled } = ctx.settings
  const byMail = emailLogin === 'off' ? [] : (['email_login'] as const)
  const inForm = sent === 'email' ? ([...byMail, 'login'] as const) : (['login', ...byMail] as const)
  const captcha = await captchaWidgets(visit, { form: inForm, passkey: passkeysEnabled ? ['login'] : [] })
  const body = loginPage(reader, withProviderError(visit, state), {
    form: addressFormOf(visit, sent === 'passkey' ? emptyForm : state, captcha.form),
    links: otherWays(visit, { isConditional: true, captcha: captcha.passkey }),
    signUp: localAccountsEnabled && signupEnabled ? reader.href('/signup', { return_to: returnTo }) : null,
    current: current && { email: current.user.email, back: home },
    invitation: failure === 'INVITATION_REQUIRED' ? putAsideNote(visit) : null,
  })
  return {
    ...captcha.page,
    page: 'login',
    title: reader.text('login.title'),
    body: html`${notice(word && reader.text(`notice.${word}`))}${body}`,
  }
}

function addressFormOf({ ctx, req, reader, returnTo }: Visit, state: FormState, captcha: Part) {
  const { emailLogin: carries, emailLoginSignup, signupMode, passkeysEnabled: hasPasskeys } = ctx.settings
  const signsUp = emailLoginSignup && (signupMode !== 'invite' || readInvitation(ctx, req) !== null)
  const takesPassword = hasPasswords(ctx.settings)
  if (!takesPassword && carries === 'off') return null
  return addressLogin(reader, state, {
    returnTo,
    hasPasskeys,
    forgot: takesPassword ? reader.href('/forgot-password', { return_to: returnTo }) : null,
    mails: carries === 'off' ? null : carries === 'code' ? 'code' : 'link',
    signsUp,
    captcha,
  })
}

interface PasskeyWay {
  /** True: the browser may offer passkeys in the address field of the page. */
  readonly isConditional: boolean
  readonly captcha: Part
  readonly saysScript?: boolean
}

/** These need no address. */
export function otherWays(visit: Visit, passkey: PasskeyWay): Html[] {
  const { ctx, reader, returnTo } = visit
  const keys = ctx.settings.oauthEnabled ? [...ctx.providers.keys()] : []
  return [
    ...(ctx.settings.passkeysEnabled ? [passkeyFormOf(visit, passkey)] : []),
    ...keys.map((key) => providerLogin(reader, listedProvider(ctx.providers, key), returnTo)),
  ]
}

function passkeyFormOf({ ctx, reader, returnTo }: Visit, { captcha, ...way }: PasskeyWay) {
  return passkeyForm(reader, {
    ...way,
    ...passkeyLoginOptions(ctx, { isInPage: true }),
    action: reader.href('/passkeys/login'),
    fields: [hidden('return_to', returnTo), captcha],
    button: reader.text('passkey.sign_in'),
    look: 'second',
    renew: reader.href('/passkeys/login/options'),
  })
}

/** An attacker can write `?error=CODE` too, so the code only selects one of our messages. */
function withProviderError({ req, reader }: Visit, state: FormState): FormState {
  const code = queryParameter(req, 'error', 64)
  if (code === null || req.method === 'POST') return state
  return { ...state, problem: reader.text(sentences[code] ?? 'login.provider_failed') }
}

const sentences: Readonly<Record<string, TextKey>> = {
  OAUTH_PROVIDER_DENIED: 'login.provider_denied',
  OAUTH_PROVIDER_UNAVAILABLE: 'login.provider_unavailable',
  OAUTH_ACCOUNT_INACTIVE: 'login.account_inactive',
  APPROVAL_PENDING: 'login.approval_pending',
  INVITATION_REQUIRED: 'error.invitation_required',
  DELETION_PENDING: 'login.deletion_pending',
}

async function signIn(visit: Visit, fields: Fields): Promise<GoOn> {
  requireFields(fields, 'email', 'password')
  const { email = '', password = '', remember } = fields
  const { captcha } = captchaOfForm(visit, fields, addressFormActions)
  return afterLogin(visit, await visit.ask.logIn({ email, password, remember: remember === 'on', ...captcha }))
}

/** The form has one widget, so its answer is good for either button. */
export const addressFormActions = ['login', 'email_login'] as const

interface LoginView {
  /** Null: nobody logs in by address. */
  readonly form: Html | null
  readonly links: readonly Html[]
  /** Null if nobody can sign up. */
  readonly signUp: string | null
  /** The account that is logged in already, and the link back to its pages. */
  readonly current: { readonly email: string; readonly back: string } | null
  readonly invitation?: Part
}

export function loginPage(reader: Reader, state: FormState, { form, links, signUp, current, invitation = null }: LoginView): Html {
  return card(
    html`<h1>${reader.text('login.title')}</h1>
`,
    problem(state),
    invitation,
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

interface AddressLogin {
  readonly returnTo: string | null
  readonly hasPasskeys: boolean
  /** Null: the form asks for no password. */
  readonly forgot: string | null
  /** Null: there is no login by email. */
  readonly mails: 'link' | 'code' | null
  /** A login by email also creates an account. */
  readonly signsUp: boolean
  readonly captcha?: Part
}

/** One field for a password and for a mail. Each way has its own button. */
export function addressLogin(reader: Reader, state: FormState, view: AddressLogin): Html {
  const { returnTo, hasPasskeys, forgot, mails, signsUp, captcha = null } = view
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
      captcha,
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

/** A link, because `form-action` blocks the redirect of a form to the provider's site. */
export function providerLogin(reader: Reader, provider: ListedProvider, returnTo: string | null): Html {
  const href = reader.href(`/oauth/${provider.key}/login`, { return_to: returnTo })
  return linkButton(href, reader.text('login.with_provider', { provider: provider.name }), 'second', provider.mark)
}
