import type { AuthContext } from '../context'
import type { Settings } from '../core/config/every-setting'
import {
  AccountInactiveError,
  MfaFactorTooNewError,
  MfaRequiredError,
  OAuthAccountInactiveError,
  OAuthAudienceUnverifiableError,
  OAuthCodeMissingError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  OAuthProviderDeniedError,
  OAuthProviderNotConfiguredError,
  OAuthProviderUnavailableError,
  OAuthRegistrationDisabledError,
  OAuthStateMismatchError,
  OAuthTokenAudienceMismatchError,
  OAuthTokenRejectedError,
  ReauthenticationRequiredError,
  UnauthorizedError,
} from '../core/errors'
import { type Answer, type Description, type QueryParameter, string } from '../http/description'
import { invitationRefusals } from '../invitations/carried'
import { stateRefusals } from '../sessions/account-state'
import { loginAnswer } from '../sessions/delivery'
import { identitySchema } from './identities'
import { ticketSchemas } from './link-identity'

/** RFC 6749 sections 4.1.2 and 4.1.2.1; RFC 9207 section 2. */
const query: readonly QueryParameter[] = [
  { name: 'state', description: 'The `state` that this service sent to the provider.', schema: string },
  { name: 'code', description: 'The authorization code of the provider.', schema: string },
  { name: 'error', description: 'The error code of the provider, if the login failed.', schema: string },
  { name: 'iss', description: 'The issuer identifier of the provider (RFC 9207).', schema: string },
  { name: 'answer', description: 'All of these parameters, encrypted by `POST /oauth/:provider/callback`.', schema: string },
]

export function describesCallback(ctx: Pick<AuthContext, 'settings' | 'store' | 'loginTasks'>): Description {
  const { settings } = ctx
  return {
    summary: 'Return from the provider: log in, link the identity, or confirm the session',
    query,
    answers: [inBody(ctx), ...redirects(settings)],
    refuses: [
      OAuthProviderNotConfiguredError,
      OAuthProviderDeniedError,
      OAuthStateMismatchError,
      OAuthCodeMissingError,
      OAuthTokenRejectedError,
      UnauthorizedError,
      AccountInactiveError,
      ...stateRefusals(ctx),
      ...accountRefusals,
      ...linkRefusals,
      MfaRequiredError,
      MfaFactorTooNewError,
      ReauthenticationRequiredError,
      ...invitationRefusals(ctx),
    ],
    ...(settings.oauthErrorRedirect !== null && { refusals: 'redirect' }),
  }
}

function inBody(ctx: Pick<AuthContext, 'settings' | 'loginTasks'>): Answer {
  const { status, description, schema } = loginAnswer(ctx, ctx.settings.tokenDelivery)
  return {
    status,
    description: `${description} After a link: the identity. If the request is not signed in, by cookies, to the session that began the link or confirmation: a ticket.`,
    schema: { oneOf: [schema, identitySchema, ...ticketSchemas] },
  }
}

/** Delivery `bearer` has no `return_to` and no success redirect. */
function redirects({ tokenDelivery, oauthErrorRedirect, appRedirects, cookieSamesite }: Settings): Answer[] {
  const hasApps = appRedirects.length > 0
  const hasPages = tokenDelivery !== 'bearer'
  const asks: Answer = {
    status: 200,
    description: `If the account has a second factor: the page that asks for it.${cookieSamesite === 'strict' ? ' Else: a page that goes on to `return_to` or to the success redirect.' : ''}`,
    isPage: true,
  }
  return [
    ...(hasPages ? [redirect('To `return_to`. Without `return_to`: to the success redirect.')] : []),
    ...(hasApps ? [redirect('To the app, with `code`, `ticket` or `error`.')] : []),
    ...(hasPages || hasApps ? [asks] : []),
    ...(oauthErrorRedirect === null ? [] : [redirect('To the error redirect, with `error=CODE`.')]),
  ]
}

function redirect(description: string): Answer {
  return { status: 302, description }
}

const providerRefusals = [OAuthError, OAuthProviderUnavailableError]

export const accountRefusals = [
  OAuthAccountInactiveError,
  OAuthRegistrationDisabledError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthProviderAlreadyLinkedError,
  ...providerRefusals,
]

export const linkRefusals = [OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, ...providerRefusals]

/** For a token that an app sends. */
export const tokenRefusals = [OAuthTokenRejectedError, OAuthTokenAudienceMismatchError, OAuthAudienceUnverifiableError]
