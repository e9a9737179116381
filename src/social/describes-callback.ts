import type { Settings } from '../config/every-setting'
import {
  AccountInactiveError,
  MfaFactorTooNewError,
  MfaRequiredError,
  OAuthCodeMissingError,
  OAuthProviderDeniedError,
  OAuthProviderNotConfiguredError,
  OAuthStateMismatchError,
  OAuthTokenRejectedError,
  ReauthenticationRequiredError,
  UnauthorizedError,
} from '../errors'
import { type Answer, type Description, type QueryParameter, string } from '../http/description'
import { loginAnswer } from '../session/delivery'
import { identitySchema } from './identity-body'
import { accountRefusals, linkRefusals } from './refusals'
import { ticketSchemas } from './send-ticket'

/** The parameters of the callback (RFC 6749 sections 4.1.2 and 4.1.2.1; RFC 9207 section 2). */
const query: readonly QueryParameter[] = [
  { name: 'state', description: 'Names the attempt that began here.', schema: string },
  { name: 'code', description: 'What the provider grants.', schema: string },
  { name: 'error', description: 'Why it does not.', schema: string },
  { name: 'iss', description: 'Who the provider is.', schema: string },
  { name: 'answer', description: 'All of these, sealed by the POST.', schema: string },
]

export function describesCallback(settings: Settings): Description {
  return {
    summary: 'The way back from the provider: log in, or link where that was begun',
    query,
    answers: [inBody(settings), ...redirects(settings)],
    refuses: [
      OAuthProviderNotConfiguredError,
      OAuthProviderDeniedError,
      OAuthStateMismatchError,
      OAuthCodeMissingError,
      OAuthTokenRejectedError,
      UnauthorizedError,
      AccountInactiveError,
      ...accountRefusals,
      ...linkRefusals,
      MfaRequiredError,
      MfaFactorTooNewError,
      ReauthenticationRequiredError,
    ],
    ...(settings.oauthErrorRedirect !== null && { refusals: 'redirect' }),
  }
}

function inBody(settings: Settings): Answer {
  const { status, description, schema } = loginAnswer({ settings }, settings.tokenDelivery)
  return {
    status,
    description: `${description} After a link: the identity. Where the session that began to link or to confirm is not signed in: a ticket.`,
    schema: { oneOf: [schema, identitySchema, ...ticketSchemas] },
  }
}

/** Delivery `bearer` has no `return_to` and no success redirect. */
function redirects({ tokenDelivery, oauthErrorRedirect, appRedirects }: Settings): Answer[] {
  const hasApps = appRedirects.length > 0
  const hasPages = tokenDelivery !== 'bearer'
  const asks: Answer = {
    status: 200,
    description: 'For a browser whose account has a second factor: the page that asks for it.',
    isPage: true,
  }
  return [
    ...(hasPages ? [redirect('To `return_to`, or else to the success redirect.')] : []),
    ...(hasApps ? [redirect('To the app, with `code`, `ticket` or `error`.')] : []),
    ...(hasPages || hasApps ? [asks] : []),
    ...(oauthErrorRedirect === null ? [] : [redirect('To the error redirect, with `error=CODE`.')]),
  ]
}

function redirect(description: string): Answer {
  return { status: 302, description }
}
