import type { LocalizedText } from '../errors'
import type { PageName } from '../page-templates'

export interface PageText {
  title: LocalizedText
  lead: LocalizedText
  /** A page with a button is a form. */
  button?: LocalizedText
}

export const pageTexts: Readonly<Record<PageName, PageText>> = {
  activate: {
    title: { 'en-US': 'Activate your account', 'pt-BR': 'Ative sua conta' },
    lead: {
      'en-US': 'One more step: confirm that this address is yours, and your account is ready.',
      'pt-BR': 'Só falta um passo: confirme que este endereço é seu, e sua conta estará pronta.',
    },
    button: { 'en-US': 'Activate account', 'pt-BR': 'Ativar conta' },
  },
  activated: {
    title: { 'en-US': 'Your account is active', 'pt-BR': 'Sua conta está ativa' },
    lead: { 'en-US': 'You can sign in now.', 'pt-BR': 'Você já pode entrar.' },
  },
  password_reset: {
    title: { 'en-US': 'Choose a new password', 'pt-BR': 'Escolha uma nova senha' },
    lead: {
      'en-US': 'You will sign in with it from now on, and will be signed out wherever you are signed in today.',
      'pt-BR': 'A partir de agora, você vai entrar com ela. Todas as sessões abertas serão encerradas.',
    },
    button: { 'en-US': 'Save password', 'pt-BR': 'Salvar senha' },
  },
  password_changed: {
    title: { 'en-US': 'Your password was changed', 'pt-BR': 'Sua senha foi alterada' },
    lead: { 'en-US': 'You can sign in with it now.', 'pt-BR': 'Você já pode entrar com ela.' },
  },
  email_verify: {
    title: { 'en-US': 'Confirm your address', 'pt-BR': 'Confirme seu e-mail' },
    lead: { 'en-US': 'Confirm that this email address is yours.', 'pt-BR': 'Confirme que este endereço é seu.' },
    button: { 'en-US': 'Confirm address', 'pt-BR': 'Confirmar e-mail' },
  },
  email_verified: {
    title: { 'en-US': 'Your address is confirmed', 'pt-BR': 'Seu e-mail está confirmado' },
    lead: { 'en-US': 'Thank you. You can close this page.', 'pt-BR': 'Tudo certo. Você já pode fechar esta página.' },
  },
  email_change: {
    title: { 'en-US': 'Use this address from now on', 'pt-BR': 'Use este e-mail a partir de agora' },
    lead: {
      'en-US': 'Your account will have this address instead of the old one.',
      'pt-BR': 'Sua conta passará a ter este endereço no lugar do antigo.',
    },
    button: { 'en-US': 'Use this address', 'pt-BR': 'Usar este e-mail' },
  },
  email_changed: {
    title: { 'en-US': 'Your address was changed', 'pt-BR': 'Seu e-mail foi alterado' },
    lead: { 'en-US': 'You sign in with the new address now.', 'pt-BR': 'Agora você entra com o novo endereço.' },
  },
  second_factor: {
    title: { 'en-US': 'One more step', 'pt-BR': 'Falta um passo' },
    lead: {
      'en-US': 'Enter the code your authenticator app shows, or one of your recovery codes.',
      'pt-BR': 'Digite o código do seu aplicativo autenticador ou um dos seus códigos de recuperação.',
    },
    button: { 'en-US': 'Sign in', 'pt-BR': 'Entrar' },
  },
  challenge_over: {
    title: { 'en-US': 'This took too long', 'pt-BR': 'Demorou demais' },
    lead: { 'en-US': 'Please sign in again.', 'pt-BR': 'Entre novamente.' },
  },
  link_invalid: {
    title: { 'en-US': 'This link is not valid any more', 'pt-BR': 'Este link não é mais válido' },
    lead: {
      'en-US': 'It was used already, replaced by a newer one, or it has expired. Please ask for a new one.',
      'pt-BR': 'Ele já foi usado, foi substituído por um mais novo ou expirou. Peça um novo.',
    },
  },
  link_refused: {
    title: { 'en-US': 'This account does not accept email links', 'pt-BR': 'Esta conta não aceita links por e-mail' },
    lead: { 'en-US': 'Please ask whoever manages it.', 'pt-BR': 'Fale com quem administra a conta.' },
  },
  address_taken: {
    title: { 'en-US': 'This address belongs to another account', 'pt-BR': 'Este e-mail já é de outra conta' },
    lead: { 'en-US': 'Nothing was changed. Please choose another one.', 'pt-BR': 'Nada foi alterado. Escolha outro.' },
  },
  too_many: {
    title: { 'en-US': 'Please wait a moment', 'pt-BR': 'Aguarde um momento' },
    lead: {
      'en-US': 'There were too many attempts. Try again in a few minutes.',
      'pt-BR': 'Foram muitas tentativas. Tente de novo em alguns minutos.',
    },
  },
  trouble: {
    title: { 'en-US': 'Something went wrong', 'pt-BR': 'Algo deu errado' },
    lead: { 'en-US': 'Please try again in a moment.', 'pt-BR': 'Tente de novo daqui a pouco.' },
  },
}

export const formTexts = {
  newPassword: { 'en-US': 'New password', 'pt-BR': 'Nova senha' },
  confirmPassword: { 'en-US': 'Repeat the password', 'pt-BR': 'Repita a senha' },
  code: { 'en-US': 'Code', 'pt-BR': 'Código' },
  logIn: { 'en-US': 'Go to sign-in', 'pt-BR': 'Ir para o login' },
} satisfies Record<string, LocalizedText>

/** Why a password was refused, by the rule of the policy; `{min}` and `{max}` come from the refusal. */
export const refusedPasswordTexts: Readonly<Record<string, LocalizedText>> = {
  mismatch: { 'en-US': 'The two passwords are not the same.', 'pt-BR': 'As duas senhas não são iguais.' },
  too_short: {
    'en-US': 'Please choose a password of at least {min} characters.',
    'pt-BR': 'Escolha uma senha com pelo menos {min} caracteres.',
  },
  too_long: { 'en-US': 'This password is too long.', 'pt-BR': 'Esta senha é longa demais.' },
  too_common: {
    'en-US': 'This password is easy to guess. Please choose another one.',
    'pt-BR': 'Esta senha é fácil de adivinhar. Escolha outra.',
  },
  missing_classes: {
    'en-US': 'Please use lower and upper case letters, digits and special characters.',
    'pt-BR': 'Use letras minúsculas e maiúsculas, números e caracteres especiais.',
  },
}

export const refusedPassword: LocalizedText = {
  'en-US': 'This password cannot be used. Please choose another one.',
  'pt-BR': 'Esta senha não pode ser usada. Escolha outra.',
}

export const wrongCode: LocalizedText = {
  'en-US': 'This code is not right, or it was used already. Wait for the next one.',
  'pt-BR': 'Este código não confere ou já foi usado. Aguarde o próximo.',
}
