import { createHmac } from 'node:crypto'
import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { PasskeyInvalidError, PasskeyLimitError, PasskeyTakenError, UnauthorizedError } from '../core/errors'
import { flag, instant, instantOrNull, type JsonSchema, shape, string, stringOrNull } from '../http/description'
import type { Locale } from '../http/locale'
import { holdSession } from '../sessions/reauthentication/fresh-session'
import { type Irreversibility, passkeyDigest } from '../sessions/reauthentication/irreversible-change'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import type { NewPasskey, PasskeyRecord, SessionRecord, UserRecord } from '../store/auth-store'
import {
  type ChallengeOwner,
  descriptorsOf,
  issuePasskeyChallenge,
  type OpenChallenge,
  type PasskeyOptions,
  readPasskeyChallenge,
  usedChallenge,
} from './passkey-challenge'
import { againAfterRace, passkeyToolsOf, refusePasskey } from './verify-passkey'
import { authenticatorName, CeremonyRefused, type PasskeyCreationOptions, type RegisteredCredential } from './webauthn/ceremonies'

const mostPasskeys = 20

interface RegistrationAsker {
  userId: string
  /** Only this session may register with these options. Null for a call without a session. */
  session: Pick<SessionRecord, 'id' | 'userId'> | null
  /** If not false, an undo link cannot revert the registration. */
  isFinal?: Irreversibility
}

/** Stores nothing. @throws UnauthorizedError (the account was deleted), AccountInactiveError, PasskeyLimitError */
export async function passkeyRegistrationOptions(
  ctx: AuthContext,
  { userId, session, isFinal = false }: RegistrationAsker,
): Promise<PasskeyOptions<PasskeyCreationOptions>> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const user = await findActiveUser(ctx, userId)
  const known = await passkeys.listForUser(userId)
  if (known.length >= mostPasskeys) throw new PasskeyLimitError()
  const handle = userHandleOf(ctx, userId, known)
  const { challenge, token, seconds } = issuePasskeyChallenge(ctx, 'register', ownerOf({ userId, session }), { handle, isFinal })
  const options = webauthn.creationOptions({
    challenge,
    seconds,
    user: { id: handle, name: user.email, displayName: user.name ?? user.email },
    exclude: descriptorsOf(known),
  })
  return { options, challenge: token }
}

export interface PasskeyRegistration {
  userId: string
  /** The session that requested the options. */
  session: Pick<SessionRecord, 'id' | 'userId'> | null
  /** `PublicKeyCredential.toJSON()` of `navigator.credentials.create()`. */
  credential: unknown
  /** The `challenge` of the options. */
  challenge: string
  /** 1 to 64 characters. Left out: the name of the authenticator's maker. If the maker is unknown, the passkey has no name. */
  name?: string | undefined
  /** Throws if the locked user row does not allow the registration. */
  check?: (ctx: AuthContext, user: UserRecord) => Promise<void> | void
  /** Language of the notice. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

/** @throws PasskeyInvalidError, PasskeyTakenError (an account has it), PasskeyLimitError, UnauthorizedError, InvalidTokenError */
export async function registerPasskey(ctx: AuthContext, registration: PasskeyRegistration): Promise<PublicPasskey> {
  const { userId, credential, challenge: token, name, locale } = registration
  const open = readPasskeyChallenge(ctx, 'register', ownerOf(registration), token)
  if (!open)
    return refusePasskey(
      ctx,
      'register',
      new CeremonyRefused('the challenge has expired, or is of another account or session'),
      PasskeyInvalidError,
    )
  const found = await passkeyToolsOf(ctx)
    .webauthn.verifyRegistration(credential, open.challenge)
    .catch((error: unknown) => refusePasskey(ctx, 'register', error, PasskeyInvalidError))
  const row = passkeyRow(ctx, userId, found, { handle: String(open.carries['handle']), name: name ?? authenticatorName(found.aaguid) })
  const passkey = await announceChange(ctx, userId, { topic: 'passkey_added', locale }, (leaveUndoPoint) =>
    againAfterRace(() => transaction(ctx, (ctx) => insert(ctx, registration, { open, row, leaveUndoPoint }))),
  )
  return toPublicPasskey(passkey)
}

interface Insertion {
  readonly open: OpenChallenge
  readonly row: NewPasskey
  readonly leaveUndoPoint: LeaveUndoPoint
}

async function insert(
  ctx: AuthContext,
  { userId, session, check }: PasskeyRegistration,
  { open, row, leaveUndoPoint }: Insertion,
): Promise<PasskeyRecord> {
  const { passkeys } = passkeyToolsOf(ctx)
  const user = await ctx.store.users.lock(userId)
  if (!user?.isActive) throw new UnauthorizedError()
  await holdSession(ctx, session)
  await check?.(ctx, user)
  const used = usedChallenge(ctx, userId, open)
  if (await ctx.store.userTokens.find(used.tokenHash)) throw new PasskeyInvalidError()
  if (await passkeys.findWithUser(row.credentialId)) throw new PasskeyTakenError()
  if ((await passkeys.listForUser(userId)).length >= mostPasskeys) throw new PasskeyLimitError()
  await leaveUndoPoint(ctx, { user, passkey: passkeyDigest(row), isFinal: open.carries['isFinal'] as Irreversibility }) // set with the options
  await ctx.store.userTokens.insert(used)
  const passkey = await passkeys.insert(row)
  ctx.events.emit('passkey.added', { userId, passkeyId: passkey.id })
  return passkey
}

function passkeyRow(
  ctx: AuthContext,
  userId: string,
  { transports, ...found }: RegisteredCredential,
  { handle, name }: { handle: string; name: string | null },
): NewPasskey {
  return { ...found, userId, userHandle: handle, transports: transports.join(' '), name, createdAt: ctx.now(), lastUsedAt: null }
}

function ownerOf({ userId, session }: RegistrationAsker): ChallengeOwner {
  return { userId, boundTo: session?.id ?? null }
}

/** An account keeps the handle of its first passkey, even if the secret changes. Does not reveal the user's id. @param known oldest first */
export function userHandleOf(ctx: AuthContext, userId: string, known: readonly PasskeyRecord[]): string {
  const [first] = known
  return first ? first.userHandle : createHmac('sha256', ctx.keys['webauthn-user-handle'][0]).update(userId).digest('base64url')
}

/** A passkey as its owner sees it. */
export interface PublicPasskey {
  /** The passkey's id in the list. The id is not secret. */
  readonly id: string
  readonly name: string | null
  readonly createdAt: Date
  /** The last use: a login, a second-factor step or a confirmation. Null if the passkey was not used since its registration. */
  readonly lastUsedAt: Date | null
  /** True if the passkey is copied to the owner's other devices or to a sync service. */
  readonly isBackedUp: boolean
  /** A UUID for the model of the authenticator. All zeros if the authenticator does not report its model. */
  readonly aaguid: string
}

export function toPublicPasskey({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid }: PasskeyRecord): PublicPasskey {
  return Object.freeze({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid })
}

export function passkeyBody({ id, name, createdAt, lastUsedAt, isBackedUp, aaguid }: PublicPasskey) {
  return {
    id,
    name,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt?.toISOString() ?? null,
    is_backed_up: isBackedUp,
    aaguid,
  }
}

export const passkeySchema: JsonSchema = shape('Passkey', {
  id: string,
  name: stringOrNull,
  created_at: instant,
  last_used_at: instantOrNull,
  is_backed_up: flag,
  aaguid: string,
})
