import { hasPasswords } from '../core/config/has-passwords'
import type { TextKey } from '../core/texts/texts'
import { hidden, notice } from '../http/html/elements'
import { emptyForm, type FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Page } from '../http/html/show-page'
import { queryParameter } from '../http/query-parameter'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { passkeyLoginOptions } from '../passkeys/log-in'
import { takeNotice } from '../sessions/notice-cookie'
import { connections } from './account/connections'
import { afterLogin } from './after-login'
import { requireFields } from './form-fault'
import { addressLogin, loginPage, providerLogin } from './login-page'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { passkeyForm } from './passkey-form'
import { listedProvider } from './provider-marks'
import { findSignedIn } from './signed-in'

/** Returns the routes of the login page, with every configured way to log in. */
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

/**
 * Shows the login page.
 * @param sent the form to which `state` belongs
 */
export async function showLogin(visit: Visit, state: FormState, sent: 'password' | 'email' | 'passkey'): Promise<Page | GoOn> {
  const { ctx, site, req, res, reader, returnTo } = visit
  const current = await findSignedIn(site, req, res)
  // A logged-in person sees the login page too, to switch accounts, after a failed sign-in at a provider (`error`), and after a form.
  const isSwitching = queryParameter(req, 'switch', 1) === '1' || queryParameter(req, 'error', 64) !== null || req.method === 'POST'
  const home = returnTo === null ? reader.href('/account') : locationOf(returnTo)
  const failure = queryParameter(req, 'error', 64)
  // The logged-in person wanted to connect a provider, and the provider's callback redirected to the login page.
  if (current && failure !== null && connections.isThere(ctx)) return { to: reader.href(connections.path, { error: failure }) }
  if (current && !isSwitching) return { to: home }
  const word = takeNotice(ctx, req, res)
  const { localAccountsEnabled, signupEnabled } = ctx.settings
  const body = loginPage(reader, withProviderError(visit, state), {
    form: addressFormOf(visit, sent === 'passkey' ? emptyForm : state),
    links: otherWays(visit, { isConditional: true }),
    signUp: localAccountsEnabled && signupEnabled ? reader.href('/signup', { return_to: returnTo }) : null,
    current: current && { email: current.user.email, back: home },
  })
  return { page: 'login', title: reader.text('login.title'), body: html`${notice(word && reader.text(`notice.${word}`))}${body}` }
}

function addressFormOf({ ctx, reader, returnTo }: Visit, state: FormState) {
  const { emailLogin: carries, emailLoginSignup: signsUp, passkeysEnabled: hasPasskeys } = ctx.settings
  const takesPassword = hasPasswords(ctx.settings)
  if (!takesPassword && carries === 'off') return null
  return addressLogin(reader, state, {
    returnTo,
    hasPasskeys,
    forgot: takesPassword ? reader.href('/forgot-password', { return_to: returnTo }) : null,
    mails: carries === 'off' ? null : carries === 'code' ? 'code' : 'link',
    signsUp,
  })
}

/**
 * Returns the ways to log in without an address: passkeys and providers.
 * @param form.isConditional true if the browser may offer passkeys in the address field of the page
 */
export function otherWays(visit: Visit, { isConditional }: { isConditional: boolean }): Html[] {
  const { ctx, reader, returnTo } = visit
  const keys = ctx.settings.oauthEnabled ? [...ctx.providers.keys()] : []
  return [
    ...(ctx.settings.passkeysEnabled ? [passkeyFormOf(visit, isConditional)] : []),
    ...keys.map((key) => providerLogin(reader, listedProvider(ctx.providers, key), returnTo)),
  ]
}

function passkeyFormOf({ ctx, reader, returnTo }: Visit, isConditional: boolean) {
  return passkeyForm(reader, {
    ...passkeyLoginOptions(ctx, { isInPage: true }),
    action: reader.href('/passkeys/login'),
    fields: [hidden('return_to', returnTo)],
    button: reader.text('passkey.sign_in'),
    look: 'second',
    isConditional,
    renew: reader.href('/passkeys/login/options'),
  })
}

/**
 * Shows the error of a provider. The callback passes the error as `?error=CODE`. An attacker can write that query too, so the code only
 * selects one of our messages.
 */
function withProviderError({ req, reader }: Visit, state: FormState): FormState {
  const code = queryParameter(req, 'error', 64)
  if (code === null || req.method === 'POST') return state
  return { ...state, problem: reader.text(sentences[code] ?? 'login.provider_failed') }
}

const sentences: Readonly<Record<string, TextKey>> = {
  OAUTH_PROVIDER_DENIED: 'login.provider_denied',
  OAUTH_PROVIDER_UNAVAILABLE: 'login.provider_unavailable',
  OAUTH_ACCOUNT_INACTIVE: 'login.account_inactive',
}

async function signIn(visit: Visit, fields: Fields): Promise<GoOn> {
  requireFields(fields, 'email', 'password')
  const { email = '', password = '', remember } = fields
  return afterLogin(visit, await visit.ask.logIn({ email, password, remember: remember === 'on' }))
}
