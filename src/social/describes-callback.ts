import type { Settings } from '../config/settings'
import {
  AccountInactiveError,
  OAuthCodeMissingError,
  OAuthProviderDeniedError,
  OAuthProviderNotConfiguredError,
  OAuthStateMismatchError,
  OAuthTokenRejectedError,
  UnauthorizedError,
} from '../errors'
import { type Answer, type Description, type QueryParameter, string } from '../http/description'
import { loginAnswer } from '../session/delivery'
import { identitySchema } from './identity-body'
import { accountRefusals, linkRefusals } from './refusals'

/** RFC 6749 sections 4.1.2 and 4.1.2.1; RFC 9207 section 2. */
const query: readonly QueryParameter[] = [
  { name: 'state', description: 'Names the attempt that began here.', schema: string },
  { name: 'code', description: 'What the provider grants.', schema: string },
  { name: 'error', description: 'Why it does not.', schema: string },
  { name: 'iss', description: 'Who the provider is.', schema: string },
]

export function describesCallback({ oauthSuccessRedirect, oauthErrorRedirect, tokenDelivery }: Settings): Description {
  return {
    summary: 'The way back from the provider: log in, or link where that was begun',
    query,
    answers: [inBody(tokenDelivery), ...redirects(oauthSuccessRedirect, oauthErrorRedirect)],
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
    ],
    ...(oauthErrorRedirect !== null && { refusals: 'redirect' }),
  }
}

function inBody(delivery: Settings['tokenDelivery']): Answer {
  const { status, description, schema } = loginAnswer(delivery)
  return { status, description: `${description} After a link: the identity.`, schema: { oneOf: [schema, identitySchema] } }
}

function redirects(success: string | null, error: string | null): Answer[] {
  return [
    ...(success === null
      ? []
      : [
          { status: 302, description: 'To the success redirect.' } as const,
          {
            status: 200,
            description: 'For a browser whose account has a second factor: the page that asks for it.',
            isPage: true,
          } as const,
        ]),
    ...(error === null ? [] : [{ status: 302, description: 'To the error redirect, with `error=CODE`.' } as const]),
  ]
}
