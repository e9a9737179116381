import { hidden, notice } from '../http/html/elements'
import { emptyForm, type FormState } from '../http/html/form-state'
import { type Html, html } from '../http/html/html'
import type { Page } from '../http/html/show-page'
import { queryParameter } from '../http/query-parameter'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { passkeyReauthenticationOptions } from '../passkeys/step-options'
import { isPassportProvider } from '../providers/passport-provider'
import type { BoundService } from '../router/request-service/request-service'
import { leaveNotice, takeNotice } from '../sessions/notice-cookie'
import { methodsOf } from '../sessions/reauthentication/methods'
import { type AccountVisit, enterAs, requireOwnForm } from './account-visit'
import { confirmationPage } from './confirmation-page'
import { requireFields } from './form-fault'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { passkeyForm } from './passkey-form'
import { passkeyOfForm } from './presented-passkey'
import { listedProvider } from './provider-marks'
import { signInAgainAddress } from './sign-in-address'

/** Routes of the confirmation page. The page asks for a credential again before a page that needs a fresh session. */
export function confirmationRoutes(site: PageSite): Route[] {
  return pageRouteSets(site, {
    path: '/reauthenticate',
    summary: 'The page where a signed-in person confirms the session',
    sharesPath: true,
    sentences: {
      PASSKEY_REJECTED: 'passkey.rejected',
      UNAUTHORIZED: 'confirm.wrong_password',
      MFA_CODE_INVALID: 'mfa.wrong',
      MFA_THROTTLED: 'mfa.throttled',
      EMAIL_LOGIN_INVALID: 'confirm.wrong_mail_code',
    },
    faultFields: { UNAUTHORIZED: 'password', MFA_CODE_INVALID: 'code', EMAIL_LOGIN_INVALID: 'email_code' },
    show: async (visit, state) => show(await enterAs(visit, backOf(visit)), state),
    post: async (visit, fields) => {
      const entered = await enterAs(visit, backOf(visit))
      requireOwnForm(entered, fields)
      return confirm(entered, fields)
    },
  })
}

async function show(visit: AccountVisit, state: FormState): Promise<Page> {
  const { ctx, req, res, reader, person, session, formOf, returnTo } = visit
  const methods = await methodsOf(ctx, session.user)
  const providers = methods.flatMap((method) => (method.startsWith('provider:') ? [method.slice('provider:'.length)] : []))
  const body = confirmationPage(reader, state, {
    email: person.email,
    takesPassword: methods.includes('password'),
    takesCode: methods.includes('otp'),
    passkey: methods.includes('passkey') ? await passkeyOf(visit) : null,
    mailsCode: methods.includes('email'),
    hasMailedCode: queryParameter(req, 'by', 5) === 'email',
    providers: providers.map((key) => listedProvider(ctx.providers, key)),
    formOf,
    returnTo,
    cancel: reader.href('/account'),
    signInAgain: signInAgainAddress(ctx, reader, returnTo),
  })
  const word = state === emptyForm ? takeNotice(ctx, req, res) : null
  return {
    page: 'reauthenticate',
    title: reader.text('confirm.title'),
    body: html`${notice(word && reader.text(`notice.${word}`))}${body}`,
    user: person,
    formTargets: authorizeOrigins(visit, providers),
  }
}

async function confirm(visit: AccountVisit, fields: Fields): Promise<GoOn> {
  const { ask } = visit
  const { provider } = fields
  if (provider !== undefined) {
    const { authorizeUrl } = await ask.beginReauthentication({ provider, returnTo: backOf(visit) })
    return { to: authorizeUrl }
  }
  if (fields['send_code'] !== undefined) return sendCode(visit)
  await ask.reauthenticate(credentialOf(fields))
  return { to: locationOf(backOf(visit)) }
}

/**
 * Returns the credential of the form.
 * @throws FormFault if the credential is empty
 */
function credentialOf(fields: Fields): Parameters<BoundService['reauthenticate']>[0] {
  const { credential, code, email_code: emailCode, password = '' } = fields
  if (credential !== undefined) return passkeyOfForm(fields)
  requireFields(fields, emailCode !== undefined ? 'email_code' : code !== undefined ? 'code' : 'password')
  if (emailCode !== undefined) return { emailCode }
  return code !== undefined ? { code } : { password }
}

async function passkeyOf({ ctx, reader, session: { user, session }, formOf, returnTo }: AccountVisit): Promise<Html> {
  const begun = await passkeyReauthenticationOptions(ctx, { userId: user.id, session })
  return passkeyForm(reader, {
    ...begun,
    action: reader.href('/reauthenticate'),
    fields: [formOf, hidden('return_to', returnTo)],
    button: reader.text('passkey.confirm'),
    look: 'second',
  })
}

/**
 * Mails a code and redirects. With the parameter `by`, the page shows the field for the code, also after a reload. The notice appears once.
 */
async function sendCode({ ask, ctx, res, reader, returnTo }: AccountVisit): Promise<GoOn> {
  await ask.requestConfirmationCode()
  leaveNotice(ctx, res, 'code_sent')
  return { to: reader.href('/reauthenticate', { return_to: returnTo, by: 'email' }) }
}

function backOf({ reader, returnTo }: Visit): string {
  return returnTo ?? reader.href('/account')
}

/**
 * Returns the origins of the providers' login pages. If the server does not yet know an authorize URL, the result allows any https origin.
 */
export function authorizeOrigins({ ctx }: Pick<Visit, 'ctx'>, keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const client = ctx.providers.get(key)
    const address = client === undefined || isPassportProvider(client) ? '' : client.authorizeUrl
    return [URL.canParse(address) ? new URL(address).origin : 'https:']
  })
}
