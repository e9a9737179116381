import type { Request } from 'express'
import { canAskForPassword, PasswordAskedError } from '../accounts/email-verification/signup-ownership'
import { PasskeyAskedError } from '../accounts/link-pages'
import { hasMailedCodes } from '../accounts/mailed-codes/code-request'
import type { AuthContext } from '../context'
import { InvalidCredentialsError } from '../core/errors'
import type { TextKey } from '../core/texts/phrase-book'
import type { GuardedAction } from '../http/guard-request'
import { card, type FormState, field, form, type Html, html, type Part, problem } from '../http/html/document'
import type { Reader } from '../http/html/reader'
import { forgotButton, oldPasswordInput, type Page } from '../http/html/send-page'
import type { Route } from '../http/routes'
import type { BoundLogin } from '../router/request-service/request-service'
import { clearProofCookie, leaveNotice, readProofCookie, setProofCookie } from '../sessions/cookies'
import { afterLogin } from './after-login'
import { captchaOfForm, captchaWidget } from './captcha'
import { FormFault, passwordRule, requireFields, showNotice } from './form-fault'
import { putAsideNote } from './invitation-note'
import { Elsewhere, type GoOn, pageRouteSets } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'
import { findSignedIn, signInAddress } from './signed-in'

/** The text about the mail does not reveal whether one was sent. */
const asking = {
  signup: { page: '/signup', lead: 'check_mail.lead' },
  forgotPassword: { page: '/forgot-password', lead: 'check_mail.lead_forgot' },
  emailLogin: { page: '/login', lead: 'check_mail.lead_login' },
  emailVerification: { page: '/account/email', lead: 'check_mail.lead' },
  emailChange: { page: '/account/email', lead: 'check_mail.lead' },
} as const

/** Where the form with the code beside a link goes. */
export const redeeming = {
  signup: { path: '/activate', button: 'link.activate.button' },
  forgotPassword: { path: '/password-reset/confirm', button: 'link.password_reset.button' },
  emailVerification: { path: '/email-verify/confirm', button: 'link.email_verify.button' },
  emailChange: { path: '/email-change/confirm', button: 'link.email_change.button' },
} as const

/** What the button *Send again* does, for the captcha. A request with a session is not asked. */
const guarded: Readonly<Record<keyof typeof asking, readonly GuardedAction[]>> = {
  signup: ['link'],
  forgotPassword: ['link'],
  emailLogin: ['email_login'],
  emailVerification: [],
  emailChange: [],
}

export interface AwaitedMail {
  readonly email: string
  readonly from: keyof typeof asking
  /** Already checked. */
  readonly returnTo: string | null
}

const name = 'check_mail'
const seconds = 3_600

/** The address is in a cookie: a query would appear in logs, and an attacker could forge it. */
export function awaitMail({ ctx, res, reader, returnTo }: Visit, mail: Omit<AwaitedMail, 'returnTo'>): GoOn {
  setProofCookie(ctx, res, name, JSON.stringify({ ...mail, returnTo }), seconds)
  return { to: reader.href('/check-mail') }
}

export function checkMailRoutes(site: PageSite): Route[] {
  const { localAccountsEnabled, emailLogin } = site.ctx.settings
  if (!localAccountsEnabled && emailLogin === 'off') return []
  return pageRouteSets(site, {
    path: '/check-mail',
    summary: 'The page after a mail was sent, with a form for the code',
    sentences: { EMAIL_LOGIN_INVALID: 'check_mail.wrong_code' },
    show: (visit, state) => showCheckMail(visit, requireMail(visit), state),
    post: (visit, fields) => (fields['code'] === undefined ? sendAgain(visit, fields) : signIn(visit, fields)),
  })
}

/** After the person typed the code. */
export function endWait({ ctx, res }: Visit): void {
  clearProofCookie(ctx, res, name)
}

export async function showCheckMail(visit: Visit, { email, from, returnTo }: AwaitedMail, state: FormState): Promise<Page> {
  const { ctx, site, req, res, reader } = visit
  const { page, lead } = asking[from]
  const { emailLogin } = ctx.settings
  const redeems = from !== 'emailLogin' && hasMailedCodes(ctx) ? redeeming[from] : null
  const ofLogin = from === 'emailLogin' && emailLogin !== 'off' ? emailLogin : 'link'
  const holds = redeems ? 'both' : ofLogin
  const signsIn = holds !== 'link' && !page.startsWith('/account')
  const current = signsIn ? await findSignedIn(site, req, res) : null
  const back = reader.href(page, { return_to: returnTo, ...(current && { switch: '1' }) })
  const replaces = current?.user.email ?? null
  const code = holds === 'link' ? null : { redeems, passwordRule: from === 'forgotPassword' ? passwordRule(ctx, reader) : null }
  const captcha = await captchaWidget(visit, ...guarded[from])
  const invitation = from === 'emailLogin' ? putAsideNote(visit) : null
  const body = checkMailPage(reader, state, { email, lead, holds, code, back, replaces, captcha: captcha.part, invitation })
  return { ...captcha.page, page: 'checkMail', title: reader.text('check_mail.title'), body: showNotice(visit, state, body) }
}

async function sendAgain(visit: Visit, fields: Fields): Promise<GoOn> {
  const { email, from, returnTo } = requireMail(visit)
  const { ask, ctx, res, reader } = visit
  const { captcha } = captchaOfForm(visit, fields)
  if (from === 'signup') await ask.requestActivation(email, captcha)
  else if (from === 'forgotPassword') await ask.requestPasswordReset(email, captcha)
  else if (from === 'emailVerification') await ask.requestEmailVerification()
  else if (from === 'emailChange') await ask.requestEmailChange({ newEmail: email })
  else await ask.requestEmailLogin({ email, ...(returnTo !== null && { returnTo }), ...captcha })
  leaveNotice(ctx, res, 'sent_again')
  return { to: reader.href('/check-mail') }
}

async function signIn(visit: Visit, fields: Fields): Promise<GoOn> {
  const { from, returnTo } = requireMail(visit)
  if (from !== 'emailLogin') throw new Elsewhere({ to: visit.reader.href('/check-mail') })
  requireFields(fields, 'code')
  const login = await confirm(visit, fields)
  endWait(visit)
  return afterLogin({ ...visit, returnTo }, login)
}

/** If nobody has verified the address, the form asks for the account's password. A forgotten password is removed. */
async function confirm({ req, ask }: Visit, { code = '', password = '', forgot }: Fields): Promise<BoundLogin> {
  if (forgot === undefined) canAskForPassword(req)
  return askingPassword(code, () => ask.confirmEmailLogin({ code, ...(forgot === undefined && password !== '' && { password }) }))
}

/** The code is right, and stays in the form. */
export async function askingPassword<T>(code: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof PasskeyAskedError)
      throw new FormFault({ form: 'check_mail.passkey', credential: 'check_mail.passkey' }, { kept: { code } })
    if (error instanceof PasswordAskedError) throw new FormFault({ password: 'error.password_missing' }, { kept: { code } })
    if (error instanceof InvalidCredentialsError) throw new FormFault({ password: 'confirm.wrong_password' }, { kept: { code } })
    throw error
  }
}

/** @throws Elsewhere if the person waits for no mail */
export function requireMail({ ctx, req, reader }: Visit): AwaitedMail {
  const mail = readMail(ctx, req)
  if (mail === null) throw new Elsewhere({ to: signInAddress(ctx, reader) })
  return mail
}

function readMail(ctx: AuthContext, req: Request): AwaitedMail | null {
  // `awaitMail` wrote the JSON, and the cookie has a valid MAC.
  return JSON.parse(readProofCookie(ctx, req, name) ?? 'null') as AwaitedMail | null
}

interface CheckMailView {
  readonly email: string
  /** Why a mail may not arrive. Does not reveal whether one was sent. */
  readonly lead: TextKey
  readonly holds: 'link' | 'code' | 'both'
  /** Null: no code. */
  readonly code: CodeView | null
  /** To the form, with the address. */
  readonly back: string
  /** A login by code replaces the session of this logged-in account. */
  readonly replaces: string | null
  readonly captcha: Part
  readonly invitation: Part
}

interface CodeView {
  /** Null: the code of a login, whose form goes to this page. */
  readonly redeems: (typeof redeeming)[keyof typeof redeeming] | null
  /** Of the new password that the form asks for. Null: none. */
  readonly passwordRule: string | null
}

const instructions = { link: 'check_mail.open_link', code: 'check_mail.use_code', both: 'check_mail.use_either' } as const

/** The same page whether the address has an account or not. */
function checkMailPage(reader: Reader, state: FormState, view: CheckMailView): Html {
  const { email, lead, holds, code, back, replaces, captcha, invitation } = view
  return card(
    html`<h1>${reader.text('check_mail.title')}</h1>
<p class="lead">${reader.text(lead)}<br><strong>${email}</strong></p>
<p>${reader.text(instructions[holds])}</p>
`,
    problem(state),
    replaces === null ? null : html`<p class="note">${reader.text('link.replaces', { email: replaces })}</p>`,
    code && codeForm(reader, state, code),
    html`<p class="after">${reader.text('check_mail.hint')}</p>
`,
    form({ action: reader.href('/check-mail'), fields: [captcha], button: reader.text('check_mail.again'), look: 'second' }),
    html`<p class="below"><a href="${back}">${reader.text('check_mail.other')}</a></p>
`,
    invitation,
  )
}

/** If the code was correct but nobody has verified the address, the form also asks for the password. */
function codeForm(reader: Reader, state: FormState, { redeems, passwordRule }: CodeView): Part {
  const asksPassword = state.faults['password'] !== undefined
  const asksPasskey = state.faults['credential'] !== undefined // its link in the mail takes the passkey
  return form({
    ...(redeems && { action: reader.href(redeems.path) }),
    fields: [
      field(reader, state, {
        name: 'code',
        label: reader.text('field.code'),
        hint: reader.text('check_mail.code_hint'),
        autocomplete: 'one-time-code',
        isCode: true,
        isDigits: true,
        isFirst: true,
        keepsCode: asksPassword || state.values['code'] !== undefined,
      }),
      passwordRule === null
        ? null
        : field(reader, state, {
            name: 'new_password',
            label: reader.text('link.new_password'),
            type: 'password',
            autocomplete: 'new-password',
            hint: passwordRule,
          }),
      asksPassword ? oldPasswordInput(reader, state, true) : null,
    ],
    button: reader.text(redeems?.button ?? 'login.button'),
    after: [asksPassword ? forgotButton(reader) : null, asksPasskey ? forgotButton(reader, 'link.without_passkey') : null],
  })
}
