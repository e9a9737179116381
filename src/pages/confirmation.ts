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
  notice,
  or,
  type Part,
  problem,
} from '../http/html/document'
import { passkeyForm, passkeyOfForm } from '../http/html/passkey-form'
import type { Reader } from '../http/html/reader'
import type { Page } from '../http/html/send-page'
import { queryParameter } from '../http/locale'
import { locationOf } from '../http/return-to'
import type { Route } from '../http/routes'
import { passkeyReauthenticationOptions } from '../passkeys/step-route'
import { isPassportProvider } from '../providers/passport-provider'
import type { BoundService } from '../router/request-service/request-service'
import { leaveNotice, takeNotice } from '../sessions/cookies'
import { methodsOf } from '../sessions/reauthentication/methods'
import { type AccountVisit, enterAs, requireOwnForm } from './account-visit'
import { requireFields } from './form-fault'
import { type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { type ListedProvider, listedProvider } from './provider-marks'
import { signInAgainAddress } from './signed-in'

/** Asks for a credential again before a page that needs a fresh session. */
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

/** @throws FormFault if the credential is empty */
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

/** With the parameter `by`, the page shows the field for the code, also after a reload. The notice appears once. */
async function sendCode({ ask, ctx, res, reader, returnTo }: AccountVisit): Promise<GoOn> {
  await ask.requestConfirmationCode()
  leaveNotice(ctx, res, 'code_sent')
  return { to: reader.href('/reauthenticate', { return_to: returnTo, by: 'email' }) }
}

function backOf({ reader, returnTo }: Visit): string {
  return returnTo ?? reader.href('/account')
}

/** If an authorize URL is not known yet, any https origin. */
export function authorizeOrigins({ ctx }: Pick<Visit, 'ctx'>, keys: readonly string[]): string[] {
  return keys.flatMap((key) => {
    const client = ctx.providers.get(key)
    const address = client === undefined || isPassportProvider(client) ? '' : client.authorizeUrl
    return [URL.canParse(address) ? new URL(address).origin : 'https:']
  })
}

interface ConfirmationView {
  readonly email: string
  readonly takesPassword: boolean
  readonly takesCode: boolean
  /** Null if the account has no passkey for the confirmation. */
  readonly passkey: Part
  /** The app can mail a confirmation code. */
  readonly mailsCode: boolean
  /** The person requested a code. */
  readonly hasMailedCode: boolean
  readonly providers: readonly ListedProvider[]
  readonly formOf: Part
  readonly returnTo: string | null
  readonly cancel: string
  /** For people who have none of these credentials. */
  readonly signInAgain: string
}

function confirmationPage(reader: Reader, state: FormState, view: ConfirmationView): Html {
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
