import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaNotEnrolledError, MfaTokenInvalidError } from '../core/errors'
import { text } from '../http/input'
import type { Route } from '../http/routes'
import { sendJson, setResult } from '../http/send'
import { isStillMeant, readChallenge } from '../sessions/challenge'
import { publicOperation } from '../sessions/operation'
import type { SessionRecord } from '../store/auth-store'
import {
  type Ceremony,
  type ChallengeOwner,
  descriptorsOf,
  issuePasskeyChallenge,
  optionsBody,
  type PasskeyOptions,
  requestOptionsSchema,
} from './passkey-challenge'
import { passkeyToolsOf } from './verify-passkey'
import type { PasskeyRequestOptions } from './webauthn/ceremonies'

/** The same for every `tokenDelivery`. `POST /mfa/verify` finishes the login. */
export function passkeyStepRoute(ctx: AuthContext): Route {
  return publicOperation(ctx, {
    method: 'POST',
    path: '/mfa/passkey/options',
    summary: 'Get the options to finish a login with a passkey',
    answers: [
      {
        status: 200,
        description: 'The options for `navigator.credentials.get()`, valid for 5 minutes with this `mfa_token`.',
        schema: requestOptionsSchema,
      },
    ],
    refuses: [MfaTokenInvalidError, MfaNotEnrolledError],
    limit: 'mfa_passkey_options',
    body: Joi.object<{ mfa_token: string }>({ mfa_token: text(4096) }),
    handle: async (_req, res, { mfa_token: mfaToken }) => {
      const begun = await passkeyStepOptions(ctx, mfaToken)
      setResult(res, begun)
      sendJson(res, 200, optionsBody(begun))
    },
  })
}

/** Stores nothing. @throws MfaTokenInvalidError, MfaNotEnrolledError (the account has no passkey) */
export async function passkeyStepOptions(ctx: AuthContext, mfaToken: string): Promise<PasskeyOptions<PasskeyRequestOptions>> {
  const challenge = readChallenge(ctx, mfaToken)
  const { userId, idHash } = challenge
  if (!isStillMeant(ctx, challenge, await ctx.store.users.find(userId))) throw new MfaTokenInvalidError()
  return optionsFor(ctx, 'step', { userId, boundTo: idHash })
}

/** Valid only in this session. @throws MfaNotEnrolledError (the account has no passkey) */
export async function passkeyReauthenticationOptions(
  ctx: AuthContext,
  { userId, session }: { userId: string; session: Pick<SessionRecord, 'id'> | null },
): Promise<PasskeyOptions<PasskeyRequestOptions>> {
  return optionsFor(ctx, 'reauthenticate', { userId, boundTo: session?.id ?? null })
}

async function optionsFor(ctx: AuthContext, ceremony: Ceremony, owner: ChallengeOwner): Promise<PasskeyOptions<PasskeyRequestOptions>> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const known = await passkeys.listForUser(owner.userId)
  if (known.length === 0) throw new MfaNotEnrolledError()
  const { challenge, token, seconds } = issuePasskeyChallenge(ctx, ceremony, owner)
  const allow = descriptorsOf(known)
  // A passkey without a descriptor may only be used if no list excludes it. It is in the authenticator's own list.
  const isWhole = allow.length === known.length
  return { options: webauthn.requestOptions({ challenge, seconds, ...(isWhole && { allow }) }), challenge: token }
}
