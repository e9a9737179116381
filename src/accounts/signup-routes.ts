import { randomUUID } from 'node:crypto'
import type { Response } from 'express'
import Joi from 'joi'
import { type CaptchaField, captchaField, captchaRefusals } from '../captcha/require-captcha'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { hasPasswords } from '../core/config/every-setting'
import { ConflictError, EmailTakenError, PasskeyInvalidError, SignupThrottledError, ValidationError } from '../core/errors'
import { describeError } from '../core/logger'
import { seeTroubleshooting } from '../core/troubleshooting'
import { type Description, flag, instant, type JsonSchema, type Refusal, shape, string, stringOrNull } from '../http/description'
import { emailAddress, requireEmail } from '../http/email-address'
import { bodyWithFixedResponseTime, withFixedResponseTime } from '../http/fixed-response-time'
import { askSchema, isJoiSchema, type StandardSchema } from '../http/host-schema'
import { passwordText, readJsonBody, text, validate } from '../http/input'
import { type Locale, localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { forgetUsedInvitation, type InvitationField, invitationField, invitationOf, invitationRefusals } from '../invitations/carried'
import { requireInvitation, requireInvitationById } from '../invitations/invitation'
import { creationOptionsSchema, optionsBody, type PasskeyOptions } from '../passkeys/passkey-challenge'
import { invitationOfPasskeySignup, passkeySignupOptions } from '../passkeys/sign-up'
import type { PresentedPasskey } from '../passkeys/verify-passkey'
import type { PasskeyCreationOptions } from '../passkeys/webauthn/ceremonies'
import { countAttempt, limitsOfClient, routeRateLimit } from '../rate-limits/rate-limiter'
import { type PasskeyFields, passkeyFields } from '../second-factor/irreversible-code'
import { loginBody, loginClient, setLoginCookies, taskFields, taskMembers, withTasks } from '../sessions/delivery'
import { presentedDevice } from '../sessions/devices/device-cookie'
import type { AnyLoginResult } from '../sessions/login'
import type { RouteSet } from '../sessions/routes-by-delivery'
import type { HostFields, InvitationRecord, UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD } from './email-links/email-link'
import { withSignupMail } from './email-links/signup-mails'
import { newSignupToken, setSignupBinding } from './email-verification/signup-binding'
import { hostGuard } from './host-guard'
import { type CodeRequest, codeRequestOf, keepCodeRequest, type TokenMember, tokenMember } from './mailed-codes/code-request'
import { checkSignUp, type Signup, sendFirstLink, signUpChecked, tellOwner } from './sign-up'
import { hidesTakenAddress } from './sign-up-again'
import { announceDroppedFields, pickWritable } from './update-profile'

type MadeAccount = Signup & { kind: 'made' }

interface SignupBody extends CaptchaField, InvitationField {
  email: string
  /** Undefined if passwords are off, and at a sign-up with a passkey. */
  password?: string
  name?: string | null
}

const withoutPasswords = Joi.object<SignupBody>({ email: emailAddress, name: text(120).allow(null, '').optional() })
const withPasswords = withoutPasswords.append<SignupBody>({ password: passwordText().allow('') })

const withPasskey = withoutPasswords.append<SignupBody & PasskeyFields>(passkeyFields)

/** One way to sign up. Its routes in every delivery differ only in the credential. */
interface SignupWay {
  readonly path: '/signup' | '/signup/passkey'
  readonly summary: string
  readonly body: Joi.ObjectSchema<SignupBody & PasskeyFields>
  /** Besides those of every sign-up. */
  readonly refuses: readonly Refusal[]
}

function waysOf(ctx: AuthContext): SignupWay[] {
  const { signupWith } = ctx.settings
  const byPassword: SignupWay = hasPasswords(ctx.settings)
    ? { path: '/signup', summary: 'Create an account with email and password', body: withPasswords, refuses: [] }
    : { path: '/signup', summary: 'Create an account with an email address', body: withoutPasswords, refuses: [] }
  const byPasskey: SignupWay = {
    path: '/signup/passkey',
    summary: 'Create an account with a passkey that the browser created',
    body: withPasskey,
    refuses: [PasskeyInvalidError],
  }
  const ways = [...(signupWith.includes('password') ? [byPassword] : []), ...(signupWith.includes('passkey') ? [byPasskey] : [])]
  return ways.map((way) => ({
    ...way,
    body: way.body.append<SignupBody & PasskeyFields>({ ...captchaField(ctx), ...invitationField(ctx) }),
  }))
}

const waitingFields = { user_id: stringOrNull, activation_required: flag, activation_url: stringOrNull, signup_token: string }
const signupSession = { user_id: string, mfa_required: { const: false }, activation_required: { const: false } }
const owingSignup = shape('SignupOwesTasks', { ...signupSession, expires_at: { type: 'null' }, ...taskFields })

function deliveredSignupSchema(ctx: AuthContext): JsonSchema {
  const { loginTasks } = ctx
  const waiting = withTasks(shape('WaitingSignup', { ...waitingFields, ...tokenMember(ctx) }), loginTasks)
  const session = withTasks(shape('SignupSession', { ...signupSession, expires_at: instant, ...tokenMember(ctx) }), loginTasks)
  return { oneOf: [waiting, session, ...(loginTasks === null ? [] : [owingSignup])] }
}

/** A sign-up that owes tasks has the members of a login too. */
function bodySignupSchema(ctx: AuthContext): JsonSchema {
  const { loginTasks } = ctx
  const tokens = { access_token: stringOrNull, refresh_token: stringOrNull }
  const schema = withTasks(shape('Signup', { ...waitingFields, ...tokens, ...tokenMember(ctx) }), loginTasks)
  if (loginTasks === null) return schema
  return { ...schema, properties: { ...(schema['properties'] as object), mfa_required: flag, mfa_token: stringOrNull } }
}

const answersOf = (ctx: AuthContext, delivery: RouteSet['delivery']): Description['answers'] => [
  {
    status: 201,
    description: 'The account was created. If the address has an account already, the response looks equal, and the owner gets a mail.',
    schema: delivery === 'session' ? deliveredSignupSchema(ctx) : bodySignupSchema(ctx),
  },
]

const signupRefusals = [EmailTakenError, SignupThrottledError]

export function signupRoutes(ctx: AuthContext, set: RouteSet): Route[] {
  const options = ctx.settings.signupWith.includes('passkey') && set.base === '' ? [optionsRoute(ctx)] : []
  return [...waysOf(ctx).map((way) => signupRoute(ctx, set, way)), ...options]
}

function signupRoute(ctx: AuthContext, { base, delivery, before }: RouteSet, { path, summary, body, refuses }: SignupWay): Route {
  return withFixedResponseTime(ctx, {
    method: 'POST',
    path: `${base}${path}`,
    describes: {
      summary,
      answers: answersOf(ctx, delivery),
      refuses: [
        ...signupRefusals,
        ...refuses,
        ...captchaRefusals(ctx),
        ...invitationRefusals(ctx),
        ...(ctx.store.users.hostFields ? [ConflictError] : []),
      ],
      hostsBody: ctx.signup.schema,
      hostRefuses: ctx.signup.onSignup !== undefined,
    },
    before: [...before, ...hostGuard(ctx, 'signup', 'signup')],
    body,
    handle: async (ctx, req, res) => {
      const given = await readJsonBody(req, res)
      const { shown, invitation: token, ...input } = await readSignup(ctx, given, body)
      const locale = localeOf(ctx, req)
      const about = { ...input, locale, userAgent: req.headers['user-agent'] }
      const checked = await checkSignUp(ctx, about, { byPasskey: shown !== null })
      const { email } = checked.given
      const asked = {
        action: 'signup',
        answer: Object(given).captcha,
        email,
        presented: presentedDevice(ctx, req),
        isBraked: true,
      } as const
      return withSignupMail(ctx, req, asked, async (ctx) => {
        await countAttempt(ctx, limitsOfClient('signup:client', clientOf(req), ctx.rateLimits.signup), { Exhausted: SignupThrottledError })
        const invitation = await invitationOfSignup(ctx, invitationOf(ctx, req, token), { email, shown })
        const code = codeRequestOf(ctx, req, 'ACTIVATION')
        const signup = await signUpChecked(ctx, checked, loginClient(ctx, req), { passkey: shown, codeRequest: code, invitation })
        if (signup.kind === 'taken')
          refuseOrTellOwner(ctx, signup.owner, { email: input.email, hasInvitation: invitation !== null }, locale)
        if (signup.kind === 'refused') refuseOrHide(ctx, signup.error)
        const link = signup.kind === 'made' ? await linkToShow(ctx, signup, locale, code) : null
        const signupToken = newSignupToken(ctx, ('mark' in signup && signup.mark?.id) || null)
        if (signup.kind === 'made' && signup.user.isActive) await forgetUsedInvitation(ctx, req, res, signup.user.id)
        const member = await keepCodeRequest(ctx, req, res, code && { ...code, signup: signupToken })
        return answerOf(ctx, res, signup, { link, signupToken, member }, delivery)
      })
    },
  })
}

/** The options are equal for every `tokenDelivery`, so one route is enough. */
function optionsRoute(ctx: AuthContext): Route {
  const describes = {
    summary: 'Get the options to create the passkey of a sign-up',
    answers: [
      {
        status: 200,
        description: 'The options for `navigator.credentials.create()`, valid for 5 minutes and for this address.',
        schema: creationOptionsSchema,
      },
    ],
    refuses: invitationRefusals(ctx),
  } as const
  const send = (res: Response, begun: PasskeyOptions<PasskeyCreationOptions>) => {
    setResult(res, begun)
    sendJson(res, 200, optionsBody(begun))
  }
  const route = {
    method: 'POST',
    path: '/signup/passkey/options',
    describes,
    before: [routeRateLimit(ctx, 'signup_passkey_options')],
    body: withoutPasswords.append<SignupBody>(invitationField(ctx)),
  } as const
  if (!ctx.settings.invitationsEnabled)
    return withBody({ ...route, handle: (_req, res, body) => send(res, passkeySignupOptions(ctx, body)) })
  return bodyWithFixedResponseTime(ctx, {
    ...route,
    handle: async (ctx, req, res, { invitation: token, ...body }) => {
      const invitation = await requireInvitation(ctx, invitationOf(ctx, req, token), requireEmail(body.email))
      const begun = passkeySignupOptions(ctx, { ...body, invitation: invitation?.id ?? null })
      return () => send(res, begun)
    },
  })
}

/** The options of a passkey carry the invitation, so the sign-up itself need not bring it again. */
function invitationOfSignup(
  ctx: AuthContext,
  token: string | null,
  { email: typed, shown }: { email: string; shown: PresentedPasskey | null },
): Promise<InvitationRecord | null> {
  const email = requireEmail(typed)
  const carried = shown && ctx.settings.invitationsEnabled ? invitationOfPasskeySignup(ctx, email, shown) : null
  return carried === null ? requireInvitation(ctx, token, email) : requireInvitationById(ctx, carried, email)
}

interface ReadSignup extends SignupBody {
  readonly extra: object
  readonly fields: HostFields
  /** Null: a sign-up without a passkey. */
  readonly shown: PresentedPasskey | null
}

/** The host's fields come from the host's schema, which can also add rules. All other values come from ours. */
async function readSignup(ctx: AuthContext, body: unknown, ours: SignupWay['body']): Promise<ReadSignup> {
  const { credential, challenge_token: challenge = '', ...own }: SignupBody & PasskeyFields = validate(ours, body)
  const read = { ...own, shown: credential === undefined ? null : { credential, challenge } }
  const { schema } = ctx.signup
  if (!schema) return { ...read, extra: {}, fields: {} }
  const presented = without(
    Object(body),
    ...(read.shown ? ['credential', 'challenge_token'] : []),
    ...(ctx.captcha ? ['captcha'] : []),
    ...(ctx.settings.invitationsEnabled ? ['invitation'] : []),
  )
  const extra = isJoiSchema(schema)
    ? validate(schema, presented, { presence: 'optional' })
    : await askStandard(ctx, schema, Object(presented))
  return { ...read, extra: without(extra, 'password'), fields: pickWritable(ctx, extra) }
}

/** Without the password. The error names only the invalid fields, because messages may contain values. */
async function askStandard(ctx: AuthContext, schema: StandardSchema, body: object): Promise<object> {
  const presented = without(body, 'password')
  const { value, issues } = await askSchema(schema, presented)
  if (!value) throw new ValidationError({ details: { errors: issues.map(({ path, rule }) => ({ path: path.join('.'), rule })) } })
  announceDroppedFields(ctx, schema, presented, value)
  return value
}

function without(body: object, ...names: readonly string[]): object {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !names.includes(key)))
}

/** If the response must not reveal that the address is taken, mails the owner instead. @throws EmailTakenError */
function refuseOrTellOwner(
  ctx: AuthContext,
  owner: UserRecord | null,
  given: { email: string; hasInvitation: boolean },
  locale: Locale,
): void {
  if (!hidesTakenAddress(ctx.settings)) throw new EmailTakenError()
  // No 503 here, because a sign-up with a free address gets none.
  const isStarted = ctx.background.runIfRoom('signup with a taken address', () => tellOwner(ctx, owner, given, locale))
  if (!isStarted && owner) ctx.events.emit('mail.failed', { userId: owner.id, kind: 'notice', reason: 'too_many' })
}

/** Only a new address's values reach the database, so an error would reveal that it has no account. Then it is only logged. */
function refuseOrHide(ctx: AuthContext, error: Error): void {
  if (!hidesTakenAddress(ctx.settings)) throw error
  ctx.logger.error(
    { error: describeError(error.cause ?? error) },
    `doorward: a sign-up was lost, because the database refused a value of your own fields. ${seeTroubleshooting('a-sign-up-was-lost')}`,
  )
}

/** Unless responses contain links, mails it after the response: the response time is then the same for a taken address. */
async function linkToShow(ctx: AuthContext, account: MadeAccount, locale: Locale, code: CodeRequest | null): Promise<string | null> {
  const send = () => sendFirstLink(ctx, account, locale, code)
  if (!ctx.showsLinks) {
    const isStarted = ctx.background.runIfRoom('activation mail of a signup', send)
    if (!isStarted) ctx.events.emit('mail.failed', { userId: account.user.id, kind: 'activation', reason: 'too_many' })
    return null
  }
  const link = await send()
  return link && link !== ACTIVATION_WITHHELD ? link.url : null
}

/** Prepared before the delay of `timingGridMilliseconds`, because new and taken addresses need different work. */
function answerOf(
  ctx: AuthContext,
  res: Response,
  signup: Signup,
  { link, signupToken, member }: { link: string | null; signupToken: string; member: TokenMember },
  delivery: RouteSet['delivery'],
): () => void {
  // The account was just created, so its login needs no second-factor step.
  const begun = signup.kind === 'made' && signup.session?.kind !== 'challenge' ? signup.session : null
  const session = begun?.kind === 'session' ? begun : null
  const account = { user_id: shownId(ctx, signup), activation_required: begun === null, activation_url: link }
  const tokens = delivery === 'session' ? {} : tokensOf(session, delivery)
  const owes = taskMembers(ctx, begun)
  const body =
    begun && delivery === 'session'
      ? { ...loginBody(begun, delivery), activation_required: false, ...owes, ...member }
      : {
          ...account,
          ...tokens,
          ...(begun?.kind === 'tasks' && loginBody(begun, delivery)),
          signup_token: signupToken,
          ...owes,
          ...member,
        }
  return () => {
    if (begun && delivery !== 'bearer') setLoginCookies(ctx, res, begun)
    // Only a pending account needs the cookie that binds the sign-up to this browser.
    if (begun === null) setSignupBinding(ctx, res, signupToken)
    const tokens = session && 'accessToken' in session ? { accessToken: session.accessToken, refreshToken: session.refreshToken } : {}
    const ofCode = member.request_token === undefined ? {} : { requestToken: member.request_token }
    const owed = begun?.kind === 'tasks' ? { tasks: begun.tasks, taskToken: begun.taskToken } : {}
    const told = { userId: account.user_id, activationRequired: begun === null, activationUrl: link }
    setResult(res, { ...told, ...tokens, ...owed, ...ofCode })
    sendJson(res, 201, body)
  }
}

function tokensOf(session: AnyLoginResult | null, delivery: RouteSet['delivery']): object {
  const presented = session && 'accessToken' in session && delivery === 'bearer' ? session : null
  return { access_token: presented?.accessToken ?? null, refresh_token: presented?.refreshToken ?? null }
}

/**
 * The id of a new active account. A pending sign-up must look the same for a new account and for a taken address: a taken address, a
 * repeated sign-up and an id that is no UUID get a random UUID. No owner's id is shown. If ids are not UUIDs, the response of a pending
 * sign-up contains no id.
 */
function shownId(ctx: AuthContext, signup: Signup): string | null {
  if (signup.kind === 'made' && signup.user.isActive) return signup.user.id
  if ((ctx.store.users.ids ?? 'uuid') !== 'uuid') return null
  return signup.kind === 'made' && !signup.isRepeat && uuid.test(signup.user.id) ? signup.user.id : randomUUID()
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
