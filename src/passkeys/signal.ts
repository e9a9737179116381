import type { AuthContext } from '../context'
import { type JsonSchema, shape, string } from '../http/description'
import type { Route } from '../http/routes'
import { sendJson } from '../http/send'
import { operation } from '../sessions/operation'
import { requestSessionOf } from '../sessions/reauthentication/fresh-session'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import type { UserRecord } from '../store/auth-store'
import { descriptorsOf } from './passkey-challenge'
import { userHandleOf } from './register'
import { passkeyToolsOf } from './verify-passkey'

const signalSchema: JsonSchema = shape('PasskeySignal', {
  rp_id: string,
  user_id: string,
  all_accepted_credential_ids: { type: ['array', 'null'], items: string },
  name: string,
  display_name: string,
})

/**
 * What a browser tells the person's authenticators, so that they forget removed passkeys and show the present name
 * (`signalAllAcceptedCredentials` and `signalCurrentUserDetails` of Web Authentication Level 3, section 5.1.10).
 */
export function signalRoute(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/passkeys/signal',
    summary: 'Get what the browser tells the authenticators of the person',
    answers: [
      {
        status: 200,
        description:
          '`user_id` is the user handle. `all_accepted_credential_ids` is null if doorward does not know every id. Then a browser must not signal the list.',
        schema: signalSchema,
      },
    ],
    access: 'live session',
    limit: 'passkeys',
    handle: async (req, res) => sendJson(res, 200, await signalOf(ctx, requestSessionOf(req).user)),
  })
}

async function signalOf(ctx: AuthContext, user: UserRecord): Promise<object> {
  const { webauthn, passkeys } = passkeyToolsOf(ctx)
  const known = await passkeys.listForUser(user.id)
  const ids = descriptorsOf(known).map(({ id }) => id)
  return {
    rp_id: webauthn.rpId,
    user_id: userHandleOf(ctx, user.id, known),
    // Of a very long id only the digest is stored. Without it in the list, an authenticator would hide a passkey that works.
    all_accepted_credential_ids: ids.length === known.length ? ids : null,
    name: user.email,
    display_name: user.name ?? user.email,
  }
}
