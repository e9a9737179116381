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
} from '../core/errors'

const providerRefusals = [OAuthError, OAuthProviderUnavailableError]

/** The errors of a login with an identity. */
export const accountRefusals = [
  OAuthAccountInactiveError,
  OAuthRegistrationDisabledError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthProviderAlreadyLinkedError,
  ...providerRefusals,
]

/** The errors of linking an identity. */
export const linkRefusals = [OAuthIdentityTakenError, OAuthProviderAlreadyLinkedError, ...providerRefusals]

/** The errors of a token that an app sends. */
export const tokenRefusals = [OAuthTokenRejectedError, OAuthTokenAudienceMismatchError, OAuthAudienceUnverifiableError]
