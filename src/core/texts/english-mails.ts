/**
 * The texts of the mails, in English. Each topic has a subject, texts about what happened (`lead`, `more`), a text for the case that
 * another person did it (`not_you`), and sometimes a button. If passwords are off, a text whose key ends in `_without_password` replaces
 * the text without this ending.
 */
export const englishMails = {
  'mail.hello': 'Hello,',
  'mail.hello_name': 'Hello {name},',
  'mail.code_label': 'Your code:',
  'mail.button_hint': 'If the button does not work, copy this link into your browser:',
  'mail.valid.link': 'This link is valid for {duration}, until {instant} (UTC).',
  'mail.valid.code': 'This code is valid for {duration}, until {instant} (UTC).',
  'mail.valid.both': 'You can use the link or the code. They are valid for {duration}, until {instant} (UTC).',
  'mail.signed_up': 'The account was created on {time}.',
  'mail.signed_up_with': 'The account was created on {time}, with {browser}.',
  'mail.login.time': 'Time: {time}',
  'mail.login.browser': 'Browser: {browser}',
  'mail.login.ip': 'IP address: {ip}',
  'mail.recovery_code': 'This change was confirmed with a recovery code. Each code works only once.',
  'mail.passkeys_removed': 'All passkeys were also removed from your account.',
  'mail.can_sign_up': 'If you want an account, you can sign up with this address.',
  'mail.undo.why':
    'If it was not you, undo the changes with the link below. You get back your email address and your authenticator app. Ways to sign in that were added are removed, and you are signed out on all devices. Then you choose a new password. A passkey or a provider that was removed does not come back, but you can add it again.',
  'mail.undo.why_without_password':
    'If it was not you, undo the changes with the link below. You get back your email address and your authenticator app. Ways to sign in that were added are removed, and you are signed out on all devices. A passkey or a provider that was removed does not come back, but you can add it again.',
  'mail.undo.button': 'Undo the changes',
  'mail.undo.final': 'This change was confirmed with your authenticator app or a passkey, so it cannot be undone with a link.',
  'mail.left.password': 'a new password, which you choose with a link in our email',
  'mail.left.email_login': 'a link or a code that we email to this address',
  'mail.left.identity': '“{provider}”, connected on {date}',
  'mail.left.passkey': 'a passkey, added on {date}',
  'mail.left.factor': 'your authenticator app, set up on {date}, as the second step',
  'mail.left.no_recovery_codes': 'Your recovery codes no longer work. After you sign in, create new ones.',
  'mail.left.factor_stays': 'Two-step verification of {date} stays. You did not switch it on? Use the link in our mail of {mailed}.',
  'mail.removed.password': 'the password',
  'mail.removed.second_factor': 'two-step verification',
  'mail.removed.sessions': 'access from all devices',
  'mail.removed.profile': 'the name and the other profile details',
  'mail.removed.passkeys': 'all passkeys',
  'mail.kept_identity':
    'kept, because the account was created with it: the sign-in provider “{provider}”. If it is not yours, sign in and disconnect it.',
  'mail.removed.identity': 'the sign-in provider “{provider}”',
  'mail.look_at_once':
    'If it was not you, first make sure that nobody else can read your emails. Then sign in, sign out of all other devices, and remove every way to sign in that is not yours.',
  'mail.activation.subject': 'Activate your account',
  'mail.activation.lead': 'An account was created with this email address. If it was you, confirm the address. This activates the account.',
  'mail.activation.button': 'Activate account',
  'mail.activation.not_you': 'If it was not you, you can ignore this email. The account then stays inactive.',
  'mail.password_reset.subject': 'Choose a new password',
  'mail.password_reset.lead': 'We received a request for a new password for your account. Open the link below to choose one.',
  'mail.password_reset.button': 'Choose new password',
  'mail.password_reset.not_you': 'If you did not ask for this, you can ignore this email. Your password stays as it is.',
  'mail.email_verification.subject': 'Confirm your email address',
  'mail.email_verification.lead': 'Please confirm that this email address is yours. Open the link below to do so.',
  'mail.email_verification.button': 'Confirm address',
  'mail.email_verification.not_you': 'If you did not ask for this, you can ignore this email. Nothing changes.',
  'mail.email_change.subject': 'Confirm your new email address',
  'mail.email_change.lead': 'Somebody asked to change the email address of an account to the address below. If it was you, confirm it.',
  'mail.email_change.button': 'Confirm new address',
  'mail.email_change.not_you': 'If you did not ask for this, you can ignore this email. Nothing changes.',
  'mail.account_restored.subject': 'Your account was restored',
  'mail.account_restored.lead':
    'The link in one of our emails was used to undo changes to your account. You were signed out on all devices, and the old password no longer works.',
  'mail.account_restored.more': 'You can sign in with:',
  'mail.account_restored.button': 'Choose new password',
  'mail.account_restored.not_you':
    'If it was not you, somebody else can read your emails. Secure this mailbox first. Then choose a new password.',
  'mail.account_restored.lead_without_password':
    'The link in one of our emails was used to undo changes to your account. You were signed out on all devices.',
  'mail.account_restored.button_without_password': 'Sign in',
  'mail.address_taken_back.subject': 'Your account has its old email address again',
  'mail.address_taken_back.lead':
    'The email address of your account was changed to this address. That change was undone with a link that we had sent to the old address. Emails about the account are no longer sent to this address.',
  'mail.address_taken_back.not_you': 'If it was not you and the account is yours, contact our support team right away.',
  'mail.admin_granted.subject': 'There is a new administrator',
  'mail.admin_granted.lead': 'This account became an administrator:',
  'mail.admin_granted.not_you':
    'If you did not do this, and nobody told you about it, remove this administrator and sign that account out on all devices.',
  'mail.admin_revoked.subject': 'An administrator was removed',
  'mail.admin_revoked.lead': 'This account is no longer an administrator:',
  'mail.admin_revoked.not_you': 'If you did not do this, and nobody told you about it, check right away who is an administrator.',
  'mail.email_login.subject': 'Sign in',
  'mail.email_login.lead': 'Somebody asked to sign in with this email address. If it was you, continue below.',
  'mail.email_login.button': 'Sign in',
  'mail.email_login.not_you': 'If it was not you, ignore this email and do not share it. Anyone who has it can sign in to your account.',
  'mail.confirmation_code.subject': 'Confirm that it is you',
  'mail.confirmation_code.lead': 'Enter this code on the page where you asked for it, to confirm that it is you.',
  'mail.confirmation_code.not_you':
    'If it was not you, do not tell anybody this code. Somebody else is signed in to your account. Sign out on all devices, and contact our support team.',
  'mail.no_account.subject': 'There is no account with this address',
  'mail.no_account.lead':
    'Somebody asked to sign in with this email address, but no account has it. Maybe you signed up with another address.',
  'mail.no_account.not_you': 'If it was not you, you can ignore this email.',
  'mail.address_taken.subject': 'You already have an account',
  'mail.address_taken.lead': 'Somebody tried to create an account with this email address, but there is already one. Nothing has changed.',
  'mail.address_taken.more': 'If it was you, sign in instead, or ask for a new password on the sign-in page.',
  'mail.address_taken.not_you': 'If it was not you, you do not need to do anything.',
  'mail.address_taken.more_without_password': 'If it was you, sign in instead.',
  'mail.password_changed.subject': 'Your password was changed',
  'mail.password_changed.lead': 'The password of your account has just been changed.',
  'mail.password_changed.not_you':
    'If it was not you, ask for a new password on the sign-in page right away. When you save it, you are signed out on all devices.',
  'mail.email_change_requested.subject': 'Somebody asked to change your email address',
  'mail.email_change_requested.lead':
    'Somebody who is signed in to your account asked to change its email address. We sent a link to the new address. Nothing changes until somebody opens that link and confirms.',
  'mail.email_change_requested.not_you':
    'If it was not you, ask for a new password on the sign-in page right away. When you save it, this change is cancelled.',
  'mail.email_changed.subject': 'Your email address was changed',
  'mail.email_changed.lead':
    'The email address of your account has just been changed. Emails about the account are no longer sent to this address.',
  'mail.email_changed.not_you':
    'If it was not you, contact our support team right away. You can no longer recover the account with this address.',
  'mail.email_change_taken.subject': 'Somebody wanted to use your email address',
  'mail.email_change_taken.lead':
    'Somebody asked to use this email address for another account. It already belongs to your account, so nothing has changed.',
  'mail.email_change_taken.more':
    'If it was you, sign in to the account that already has this address. Or choose a different address for the account that you wanted to change.',
  'mail.email_change_taken.not_you': 'If it was not you, you do not need to do anything.',
  'mail.identity_linked.subject': 'A way to sign in was added to your account',
  'mail.identity_linked.lead': 'The sign-in provider “{provider}” was connected to your account. You can now sign in with it.',
  'mail.identity_linked.not_you': 'If it was not you, disconnect it in your account settings and choose a new password right away.',
  'mail.identity_unlinked.subject': 'A way to sign in was removed from your account',
  'mail.identity_unlinked.lead': 'The sign-in provider “{provider}” was disconnected from your account. You can no longer sign in with it.',
  'mail.identity_unlinked.not_you': 'If it was not you, choose a new password right away, and connect the provider again.',
  'mail.passkey_added.subject': 'A passkey was added to your account',
  'mail.passkey_added.lead': 'A passkey was added to your account. You can now sign in with it.',
  'mail.passkey_added.not_you': 'If it was not you, remove it in your account settings and choose a new password right away.',
  'mail.passkey_removed.subject': 'A passkey was removed from your account',
  'mail.passkey_removed.lead': 'A passkey was removed from your account. You can no longer sign in with it.',
  'mail.passkey_removed.not_you': 'If it was not you, choose a new password right away, and add the passkey again.',
  'mail.mfa_enabled.subject': 'Two-step verification is on',
  'mail.mfa_enabled.lead':
    'From now on, you also need a code from your authenticator app to sign in. Keep your recovery codes in a safe place.',
  'mail.mfa_enabled.not_you': 'If it was not you, contact our support team right away.',
  'mail.mfa_replaced.subject': 'Your authenticator app was replaced',
  'mail.mfa_replaced.lead':
    'Another authenticator app was set up for your account. The codes of the old app and your old recovery codes no longer work.',
  'mail.mfa_replaced.not_you': 'If it was not you, contact our support team right away.',
  'mail.mfa_disabled.subject': 'Two-step verification is off',
  'mail.mfa_disabled.lead': 'You no longer need a code from your authenticator app to sign in.',
  'mail.mfa_disabled.not_you': 'If it was not you, choose a new password right away and turn two-step verification on again.',
  'mail.recovery_codes_regenerated.subject': 'You have new recovery codes',
  'mail.recovery_codes_regenerated.lead': 'New recovery codes were made for your account. The old ones no longer work.',
  'mail.recovery_codes_regenerated.not_you': 'If it was not you, choose a new password right away and make new recovery codes.',
  'mail.account_taken_over.subject': 'Your account was secured',
  'mail.account_taken_over.lead':
    'You have just confirmed that this email address is yours. Before that, nobody had confirmed it, so another person may have set up this account. For your safety, we removed the things listed below.',
  'mail.account_taken_over.more':
    'If you added anything in the list below yourself, sign in and add it again. If you need a new password, ask for one on the sign-in page.',
  'mail.account_taken_over.not_you':
    'If you did not confirm the address, ask for a new password on the sign-in page right away. Somebody else may be using your mailbox.',
  'mail.account_taken_over.more_without_password': 'If you added anything in the list below yourself, sign in and add it again.',
  'mail.account_taken_over.not_you_without_password':
    'If you did not confirm the address, secure this mailbox right away. Somebody else may be using it.',
  'mail.recovery_code_used.subject': 'A recovery code was used',
  'mail.recovery_code_used.lead':
    'A recovery code of your account has just been used. Each code works only once. Make new codes before you have used all of them.',
  'mail.recovery_code_used.not_you': 'If it was not you, choose a new password right away and make new recovery codes.',
  'mail.new_device.subject': 'A new device signed in to your account',
  'mail.new_device.lead': 'Somebody signed in to your account with a browser that we do not recognize.',
  'mail.new_device.not_you': 'If it was not you, sign that device out in your account settings and choose a new password right away.',
  'mail.wrong_codes.subject': 'Somebody entered wrong codes for your account',
  'mail.wrong_codes.lead':
    'Somebody entered three wrong codes for the two-step verification of your account. That person may know your password, or may already be signed in to your account.',
  'mail.wrong_codes.not_you':
    'If it was not you, choose a new password right away, and sign out of all other devices. None of these codes was accepted.',
  'mail.wrong_codes.lead_without_password':
    'Somebody entered three wrong codes for the two-step verification of your account. That person passed the first step of the sign-in, or is already signed in to your account.',
  'mail.wrong_codes.not_you_without_password':
    'If it was not you, secure this mailbox and sign out of all other devices right away. None of these codes was accepted.',
} as const satisfies Readonly<Record<string, string>>
