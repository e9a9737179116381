import { forgetMailedCodes } from '../accounts/mailed-codes/code-limit'
import { type AuthContext, passkeysOf, transaction } from '../context'
import { type AuthMethod, isSecondFactor } from '../core/amr'
import { type AppError, TaskTokenInvalidError, UnauthorizedError } from '../core/errors'
import { describeError } from '../core/logger'
import { type DeviceCode, issueDeviceCode, mailDeviceCode } from '../login-tasks/device-code'
import {
  issuingTime,
  newProgress,
  readTaskToken,
  requireTaskLogin,
  signTaskToken,
  type TaskLogin,
  type TaskLoginToSign,
} from '../login-tasks/task-token'
import { askTasks, type Owed, tasksOwed } from '../login-tasks/tasks-owed'
import { issueAppCode } from '../social/app-redirect/issue-code'
import type { SessionStore, UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { findTrust, forgetNewTrust, keepTrust } from '../trusted-devices/trust'
import { signAccessToken } from './access-token'
import { askForClaims, type HostClaims, noClaims } from './ask-for-claims'
import { accountDigest, isAccountDigest, signChallenge } from './challenge'
import { deviceOfLogin } from './devices/device-of-login'
import { findBySessionCookie, isAlive, lasting, sessionsOf } from './find-session'
import { startSession } from './insert-session'
import type {
  AnyLoginResult,
  AppCode,
  Login,
  LoginChallenge,
  LoginClient,
  LoginOwesTasks,
  NewTrust,
  OpenedServerSession,
  OpenedSession,
  TokenPair,
} from './login'
import { stateRefusal } from './state-refusal'
import { issueStatelessToken } from './stateless-refresh-token'

/** The transaction has written everything. The host's claims, and so the access token, come after the commit. */
export type BegunLogin = DecidedLogin | UndecidedLogin | RefusedLogin

export type DecidedLogin = BegunTokens | BegunOther

interface BegunOther {
  readonly result: OpenedServerSession | AppCode | LoginChallenge | LoginOwesTasks
  readonly access: null
  /** Of the account. */
  readonly email: string
  /** The first answer with tasks. */
  readonly isFirst?: boolean
  /** To mail after the commit. */
  readonly deviceCode?: DeviceCode | null
}

/** The host must be asked what the login owes, which `finishLogin` does after the commit. */
interface UndecidedLogin {
  readonly result: { readonly kind: 'undecided'; readonly userId: string }
  readonly access: null
  readonly client: LoginClient
  readonly login: TaskLogin
}

/** Nothing has begun. `finishLogin` throws after the commit, because what the request has proved stays. */
interface RefusedLogin {
  readonly result: { readonly kind: 'refused'; readonly userId: string }
  readonly access: null
  readonly refusal: AppError
}

interface BegunTokens {
  /** Of the account. */
  readonly email: string
  readonly result: Omit<TokenPair, 'accessToken'>
  readonly access: AccessOfLogin
}

interface AccessOfLogin {
  readonly user: UserRecord
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  readonly authenticatedAt: Date | null
  readonly at: Date
}

/**
 * Call it in the transaction that locked or inserted the user: a parallel deactivation then waits, and ends the session. The user is active,
 * or an account whose state refuses the login (`stateRefusal`).
 */
export async function startLogin(ctx: AuthContext, client: LoginClient, user: UserRecord, login: Login): Promise<BegunLogin> {
  if (!needsSecondFactor(ctx, user, login)) return afterFactors(ctx, client, user, login)
  const trust = await findTrust(ctx, client.browser, user, login)
  // Young, so that the session is not fresh: nobody showed the second factor now.
  if (trust) return afterFactors(ctx, client, user, { ...login, trust, isYoung: true })
  return { result: await challenge(ctx, user, login), access: null, email: user.email }
}

async function afterFactors(ctx: AuthContext, client: LoginClient, user: UserRecord, login: Login): Promise<BegunLogin> {
  const refusal = stateRefusal(ctx, user)
  if (refusal !== null) return { result: { kind: 'refused', userId: user.id }, access: null, refusal }
  // An app owes its tasks at the exchange.
  if (ctx.loginTasks === null || login.goesOn || typeof client.gets === 'object') return beginSession(ctx, client, user, login)
  const owed = await tasksOwed(ctx, ctx.loginTasks, user, login)
  if (owed?.tasks.length === 0) return beginSession(ctx, client, user, login)
  return owed === null ? undecided(ctx, client, user, login) : owing(ctx, client, user, login, owed)
}

export function isUndecided(begun: BegunLogin): begun is UndecidedLogin {
  return begun.result.kind === 'undecided'
}

export function isRefused(begun: BegunLogin): begun is RefusedLogin {
  return begun.result.kind === 'refused'
}

/** Signs what is owed, and makes the code for the mailbox. */
async function owing(ctx: AuthContext, client: LoginClient, user: UserRecord, login: Login, owed: Owed): Promise<BegunOther> {
  const { tasks = newProgress(ctx) } = login
  const deviceCode = owed.tasks[0] === 'device' ? await issueDeviceCode(ctx, user, client) : null
  const progress = { ...tasks, isDeviceSettled: owed.isDeviceSettled, codeId: deviceCode?.id ?? null }
  const taskToken = await signedTasks(ctx, user, { ...login, tasks: progress, owed: owed.tasks })
  const result = { kind: 'tasks', userId: user.id, tasks: owed.tasks, taskToken } as const
  return { result, access: null, email: user.email, isFirst: tasks.done.length === 0, deviceCode }
}

async function undecided(ctx: AuthContext, client: LoginClient, user: UserRecord, login: Login): Promise<UndecidedLogin> {
  const { isKnownDevice, tasks = { ...newProgress(ctx), isDeviceSettled: !isKnownDevice } } = login
  const token = await signedTasks(ctx, user, { ...login, tasks, owed: [] })
  // What a token does not carry.
  const held = { ...readTaskToken(ctx, token), ...(isKnownDevice && { isKnownDevice }) }
  return { result: { kind: 'undecided', userId: user.id }, access: null, client, login: held }
}

async function signedTasks(ctx: AuthContext, user: UserRecord, login: Omit<TaskLoginToSign, 'issuedAt'>): Promise<string> {
  return signTaskToken(ctx, await asStored(ctx, user), { ...login, issuedAt: await issuingTime(ctx, user.id) })
}

/**
 * @throws UnauthorizedError if the account changed while the host was asked (TaskTokenInvalidError in a step of a task);
 * ServiceUnavailableError if the host fails
 */
async function decide(ctx: AuthContext, undecided: UndecidedLogin): Promise<DecidedLogin> {
  try {
    return await decideAgain(ctx, undecided)
  } catch (error) {
    const isFirst = undecided.login.tasks.done.length === 0 // its client has no task token yet
    throw isFirst && error instanceof TaskTokenInvalidError ? new UnauthorizedError({ cause: error }) : error
  }
}

async function decideAgain(ctx: AuthContext, { client, login }: UndecidedLogin): Promise<DecidedLogin> {
  const user = await requireTaskLogin(ctx, login, await ctx.store.users.find(login.userId))
  const asked = await askTasks(ctx, user, login, client.browser)
  const begun = await transaction(asked, async (ctx) =>
    startLogin(ctx, client, await requireTaskLogin(ctx, login, await ctx.store.users.lock(login.userId)), login),
  )
  if (isUndecided(begun) || isRefused(begun)) throw new TaskTokenInvalidError() // changed again
  return begun
}

export async function beginSession(ctx: AuthContext, client: LoginClient, user: UserRecord, login: Login): Promise<DecidedLogin> {
  const { gets, origin, browser } = client
  const { email } = user
  const { amr, passwordRequired } = login
  const session: OpenedSession = { kind: 'session', userId: user.id, amr, ...(passwordRequired && { passwordRequired }) }
  if (typeof gets === 'object')
    return { result: { ...session, hasBegun: false, code: await issueAppCode(ctx, user, login, gets) }, access: null, email }
  const device = browser && (await deviceOfLogin(ctx, browser, user, login)) // before this login revokes the session that it replaces
  if (gets === 'session') {
    const sessions = sessionsOf(ctx.store)
    if (origin.sessionToken) await endPresented(ctx, sessions, origin.sessionToken)
    const { session: row, token, endedByLimit } = await startSession(ctx, sessions, 'session', user, login, origin)
    const opened = { ...session, sessionId: row.id, sessionToken: token, expiresAt: row.expiresAt }
    const trust = await keepTrust(ctx, browser, user, login, row.id)
    return { result: { ...opened, ...limited(endedByLimit), ...lasting(login), ...device?.(row.id), ...trust }, access: null, email }
  }
  const { id, token, authenticatedAt, expiresAt, createdAt, endedByLimit } = ctx.store.sessions
    ? await startTokens(ctx, ctx.store.sessions, user, login, client)
    : { id: null, endedByLimit: 0, ...(await issueStatelessToken(ctx, user.id, login)) }
  const opened = { ...session, refreshToken: token, refreshTokenExpiresAt: expiresAt }
  const trust = await keepTrust(ctx, browser, user, login, id)
  return {
    result: { ...opened, ...limited(endedByLimit), ...lasting(login), ...device?.(id), ...trust },
    access: { user: await forHook(ctx, user), amr: login.amr, sessionId: id, authenticatedAt, at: createdAt },
    email,
  }
}

/**
 * Call it after the commit. If the host's function fails, the new session is revoked. What the login has used up stays used.
 * @throws the refusal by the account's state; ServiceUnavailableError if the host's claims are not available; UnauthorizedError if the account changed while the host was asked
 */
export async function finishLogin(ctx: AuthContext, begun: BegunLogin, about: { provider?: string } = {}): Promise<AnyLoginResult> {
  if (isRefused(begun)) throw begun.refusal
  const decided = isUndecided(begun) ? await decide(ctx, begun) : begun
  const result = await withAccessToken(ctx, decided)
  const { userId } = result
  if (result.kind === 'tasks') {
    const { isFirst, deviceCode } = decided as BegunOther
    if (isFirst) ctx.events.emit('task.required', { userId, tasks: result.tasks })
    if (deviceCode) await mailDeviceCode(ctx, deviceCode)
  } else if (result.kind === 'challenge') ctx.events.emit('challenge', { userId, amr: result.amr })
  else if (result.hasBegun !== false) {
    ctx.events.emit('login', { userId, amr: result.amr, ...about })
    await forgetMailedCodes(ctx, decided.email)
  }
  announceEndedByLimit(ctx, decided)
  return result
}

/** Call it after the commit: the transaction may hold the only connection for the hook. @throws the errors of `finishLogin` */
export async function withAccessToken(ctx: AuthContext, { result, access }: DecidedLogin): Promise<AnyLoginResult> {
  if (access === null) return result
  const { refreshToken, refreshTokenExpiresAt, kind, userId, amr, ...rest } = result
  const claims = ctx.accessTokenClaims ? await claimsOfNewSession(ctx, { result, access }) : noClaims
  const accessToken = signAccessToken(ctx, access.user, { ...access, claims })
  return { kind, userId, amr, accessToken, refreshToken, refreshTokenExpiresAt, ...rest }
}

function announceEndedByLimit(ctx: AuthContext, { result }: Pick<DecidedLogin, 'result'>): void {
  if (result.kind !== 'session' || !result.endedByLimit) return
  ctx.events.emit('session.revoked', { userId: result.userId, count: result.endedByLimit, reason: 'limit' })
}

function needsSecondFactor({ settings }: AuthContext, user: UserRecord, { amr, skipsSecondFactor }: Login): boolean {
  return settings.mfaEnabled && user.totpEnabledAt !== null && !skipsSecondFactor && !amr.some(isSecondFactor)
}

async function challenge(ctx: AuthContext, user: UserRecord, login: Login): Promise<LoginChallenge> {
  const mfaToken = signChallenge(ctx, await asStored(ctx, user), login)
  const passkeys = await passkeysOf(ctx)?.listForUser(user.id)
  const mfaMethods = passkeys && passkeys.length > 0 ? (['otp', 'passkey'] as const) : (['otp'] as const)
  return { kind: 'challenge', userId: user.id, amr: login.amr, mfaToken, ...(passkeys && { mfaMethods }) }
}

/** A challenge is later compared with the row, which can store less than `user`: whole seconds only, or no such column. */
async function asStored(ctx: AuthContext, user: UserRecord): Promise<UserRecord> {
  return (await ctx.store.users.find(user.id)) ?? user
}

function forHook(ctx: AuthContext, user: UserRecord): UserRecord | Promise<UserRecord> {
  return ctx.accessTokenClaims ? asStored(ctx, user) : user
}

async function startTokens(ctx: AuthContext, sessions: SessionStore, user: UserRecord, login: Login, { origin }: LoginClient) {
  const { session, token, endedByLimit } = await startSession(ctx, sessions, 'tokens', user, login, origin)
  const { id, authenticatedAt, expiresAt, createdAt } = session
  return { id, token, authenticatedAt, expiresAt, createdAt, endedByLimit }
}

function limited(endedByLimit: number): { endedByLimit?: number } {
  return endedByLimit > 0 ? { endedByLimit } : {}
}

/** The browser will lose its old cookie, so nobody could log that session out later. */
async function endPresented(ctx: AuthContext, sessions: SessionStore, presented: string): Promise<void> {
  const found = await findBySessionCookie({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, presented)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}

async function claimsOfNewSession(ctx: AuthContext, begun: Omit<BegunTokens, 'email'>): Promise<HostClaims> {
  const { user, amr, sessionId } = begun.access
  try {
    const claims = await askForClaims(ctx, toPublicUser(user), amr)
    // The host had up to five seconds. An access token that is signed after a deactivation would be valid for its whole lifetime.
    if (!(await isStillOpen(ctx, user, sessionId))) throw new UnauthorizedError()
    return claims
  } catch (error) {
    if (sessionId !== null) await revokeQuietly(ctx, sessionId, begun.result.newTrust)
    announceEndedByLimit(ctx, begun)
    throw error
  }
}

/** Nobody has the tokens of the session and of its trust. If this fails too, the first error counts, and the session ends by itself. */
async function revokeQuietly(ctx: AuthContext, sessionId: string, newTrust: NewTrust | undefined): Promise<void> {
  try {
    await ctx.store.sessions?.revoke({ id: sessionId }, ctx.now())
    if (newTrust) await forgetNewTrust(ctx, newTrust)
  } catch (error) {
    ctx.logger.error({ error: describeError(error) }, 'doorward: the session of a failed login could not be revoked; nobody has its token')
  }
}

/** Without a row of the session, the account itself must be unchanged. */
async function isStillOpen(ctx: AuthContext, user: UserRecord, sessionId: string | null): Promise<boolean> {
  if (sessionId !== null) {
    const found = await sessionsOf(ctx.store).find({ id: sessionId })
    return found?.user.isActive === true && isAlive(found.session, ctx.now())
  }
  const now = await ctx.store.users.find(user.id)
  return now?.isActive === true && isAccountDigest(ctx.keys.state, now, accountDigest(ctx.keys.state[0], user))
}
