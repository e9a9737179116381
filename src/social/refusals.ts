import {
  OAuthAccountInactiveError,
  OAuthAudienceUnverifiableError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthError,
  OAuthIdentityTakenError,
  OAuthProviderAlreadyLinkedError,
  OAuthProviderUnavailableError,
  OAuthRegistrationDisabledError,
  OAuthTokenAudienceMismatchError,
  OAuthTokenRejectedError,
} from '../errors'

const providerRefusals = [OAuthError, OAuthProviderUnavailableError]

/** Of an identity that wants to log in. */
export const accountRefusals = [
  OAuthAccountInactiveError,
  OAuthRegistrationDisabledError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthProviderAlreadyLinkedError,
  ...providerRefusals,
]

/** Of one that is to be linked. */
export const linkRefusals = [OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, ...providerRefusals]

/** Of an access token that somebody brings. */
export const tokenRefusals = [OAuthTokenRejectedError, OAuthTokenAudienceMismatchError, OAuthAudienceUnverifiableError]
