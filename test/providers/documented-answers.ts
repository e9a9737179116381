/**
 * Answers in the form that the providers document. Each says where its form is documented, what was compared with it in November 2026, and what
 * was not. A stored copy of a page was read, which may be older than the page: look there again when a test of a client is in doubt.
 */

/**
 * https://docs.discord.com/developers/resources/user#user-object, "Example User", without its decorations, collectibles and guild.
 * Compared with developers/resources/user.mdx of https://github.com/discord/discord-api-docs.
 */
export const discordUser = {
  id: '80351110224678912',
  username: 'Nelly',
  discriminator: '1337',
  global_name: null,
  avatar: '8342729096ea3675442027381ff50dfe',
  verified: true,
  email: 'nelly@discord.com',
  flags: 64,
  banner: '06c16474723fe537c283b8efa61a30c8',
  accent_color: 16_711_680,
  premium_type: 0,
  public_flags: 64,
}

/**
 * https://docs.discord.com/developers/topics/oauth2#get-current-authorization-information, "Example Authorization Information", without its `user`.
 * Compared with a copy of the page that others made in August 2026; not checked against the page.
 */
export const discordAuthorization = {
  application: {
    id: '159799960412356608',
    name: 'AIRHORN SOLUTIONS',
    icon: 'f03590d3eb764081d154a66340ea7d6d',
    description: '',
    hook: true,
    bot_public: true,
    bot_require_code_grant: false,
    verify_key: 'c8cde6a3c8c6e49d86af3191287b3ce255872be1fff6dc285bdb420c06a2c3c8',
  },
  scopes: ['guilds.join', 'identify'],
  expires: '2021-01-23T02:33:17.017000+00:00',
}

/** Shape as commonly documented; not checked against the page, which is https://developers.facebook.com/docs/graph-api/reference/user. */
export const facebookUser = {
  id: '10220000000000001',
  name: 'Jane Smith',
  email: 'jane@example.com',
  picture: {
    data: { height: 200, is_silhouette: false, url: 'https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1', width: 200 },
  },
}

/**
 * https://developers.facebook.com/documentation/facebook-login/guides/advanced/manual-flow, "Inspecting Access Tokens", where `app_id` is a number.
 * Compared with a copy of the page that others made; not checked against the page. A string here, as the tests put their own ids in.
 */
export const facebookToken = {
  app_id: '138483919580948',
  type: 'USER',
  application: 'Social Cafe',
  expires_at: 1_352_419_328,
  is_valid: true,
  issued_at: 1_347_235_328,
  metadata: { sso: 'iphone-safari' },
  scopes: ['email', 'publish_actions'],
  user_id: '1207059',
}

/**
 * https://developers.facebook.com/docs/graph-api/guides/error-handling, without its two texts for people.
 * Compared with copies that others made of the example; not checked against the page.
 */
export const facebookError = (code: number) => ({
  error: { message: 'Message describing the error', type: 'OAuthException', code, error_subcode: 460, fbtrace_id: 'EJplcsCHuLu' },
})

/**
 * The claims and their types: https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference and, for `xms_edov`, which is a Boolean there,
 * https://learn.microsoft.com/entra/identity-platform/optional-claims-reference. Compared with both in https://github.com/MicrosoftDocs/entra-docs.
 * Neither shows an example. The values are those of Microsoft's well-known sample token, as others copied it; `email` and `xms_edov` are ours.
 */
export const microsoftClaims = {
  sub: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
  oid: '00000000-0000-0000-66f3-3332eca7ea81',
  tid: '9122040d-6c67-4c5b-b112-36a304b66dad',
  name: 'Abe Lincoln',
  preferred_username: 'AbeLi@microsoft.com',
  email: 'AbeLi@microsoft.com',
  xms_edov: true,
  ver: '2.0',
  aio: 'Df2UVXL1ix!lMCWMSOJBcFatzcGfvFGhjKv8q5g0x732dR5MB5BisvGQO7YWByjd8iQDLq!eGbIDakyp5mnOrcdqHeYSnltepQmRp6AIZ8jY',
}

/**
 * The claims: https://docs.gitlab.com/integration/openid_connect_provider/#shared-information, which shows no example; the values are ours.
 * Compared with doc/integration/openid_connect_provider.md and, for `preferred_username`, config/initializers/doorkeeper_openid_connect.rb of
 * https://github.com/gitlabhq/gitlabhq, both in older versions.
 */
export const gitlabUser = {
  sub: '1234',
  name: 'Sidney Jones',
  nickname: 'sidney',
  preferred_username: 'sidney',
  email: 'sidney@example.com',
  email_verified: true,
  profile: 'https://gitlab.com/sidney',
  picture: 'https://gitlab.com/uploads/-/system/user/avatar/1234/avatar.png',
  groups: ['group-a', 'group-a/team'],
}

/**
 * https://learn.microsoft.com/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2, "Api Request to retrieve member details".
 * Compared with copies that others made of the example; not checked against the page. Elsewhere `locale` is described as an object.
 */
export const linkedinUser = {
  sub: '782bbtaQ',
  name: 'John Doe',
  given_name: 'John',
  family_name: 'Doe',
  picture: 'https://media.licdn-ei.com/dms/image/C5F03AQHqK8v7tB1HCQ/profile-displayphoto-shrink_100_100/0/',
  locale: 'en-US',
  email: 'doe@email.com',
  email_verified: true,
}

/** https://docs.slack.dev/reference/methods/openid.connect.userInfo, "Response", without its pictures. Compared with the page; `picture` is shortened there. */
export const slackUser = {
  ok: true,
  sub: 'U0R7JM',
  'https://slack.com/user_id': 'U0R7JM',
  'https://slack.com/team_id': 'T0R7GR',
  email: 'krane@slack-corp.com',
  email_verified: true,
  date_email_verified: 1_622_128_723,
  name: 'krane',
  picture: 'https://secure.gravatar.com/1234.png',
  given_name: 'Bront',
  family_name: 'Labradoodle',
  locale: 'en-US',
  'https://slack.com/team_name': 'kraneflannel',
  'https://slack.com/team_domain': 'kraneflannel',
}

/**
 * https://dev.twitch.tv/docs/authentication/getting-tokens-oidc. Compared with its list of claims (`claims_supported`). The values are partly ours;
 * the example was not checked against the page.
 */
export const twitchUser = {
  sub: '713936733',
  email: 'person@example.com',
  email_verified: true,
  picture: 'https://static-cdn.jtvnw.net/user-default-pictures-uv/ebb84563-db81-4b9c-8940-64ed33ccfc7b-profile_image-300x300.png',
  preferred_username: 'scotwht',
}
