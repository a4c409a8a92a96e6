// SPDX-FileCopyrightText: 2026 The pleach authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"pleach/internal/strictjson"
)

// harmless keys of config.json change neither the function from ids to
// log-probabilities nor its gradient, whatever their value.
var harmless = []string{
	// Where the file comes from, and what wrote it.
	"_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "transformers.js_config",
	"is_llama_config", "unsloth_fixed", "unsloth_version",
	// How transformers computes the same: pretraining_tp splits products in
	// sums, chunk_size_feed_forward splits the tokens.
	"pretraining_tp", "chunk_size_feed_forward", "use_cache", "_attn_implementation",
	"_attn_implementation_autoset", "attn_implementation", "_flash_attn_2_enabled",
	"gradient_checkpointing", "torchscript", "use_bfloat16", "tf_legacy_loss",
	// What it returns beside the logits.
	"output_attentions", "output_hidden_states", "return_dict",
	// How a model from scratch starts.
	"initializer_range",
	// Labels of classifiers, which transformers writes for every model.
	"id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params",
	"is_decoder",
	// Lengths that say what max_position_embeddings does, or that belong to a
	// sliding window, which is refused.
	"max_sequence_length", "max_window_layers",
	// The tokenizer, and how text is generated.
	"tokenizer_class", "prefix", "sep_token_id", "decoder_start_token_id", "unk_token_id",
	"max_length", "max_new_tokens", "min_length", "do_sample", "early_stopping", "num_beams",
	"num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "min_p", "typical_p",
	"epsilon_cutoff", "eta_cutoff", "repetition_penalty", "encoder_repetition_penalty",
	"length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
	"num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id",
	"forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty",
	"suppress_tokens", "begin_suppress_tokens", "cache_implementation", "num_assistant_tokens",
	"num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_lookbehind",
	"target_lookbehind",
}

// reasons says of keys that are met in the wild why they are refused.
var reasons = map[string]string{
	"auto_map":                "the model is code that comes with it, which is not run",
	"quantization_config":     "quantized weights are not read",
	"compression_config":      "quantized weights are not read",
	"sliding_window":          "attention is over all earlier tokens of a document",
	"use_sliding_window":      "attention is over all earlier tokens of a document",
	"num_local_experts":       "layers are dense",
	"num_experts":             "layers are dense",
	"attn_logit_softcapping":  "logits are not capped",
	"final_logit_softcapping": "logits are not capped",
	"clip_qkv":                "queries, keys and values are not clipped",
	"embedding_multiplier":    "nothing is scaled",
	"attention_multiplier":    "nothing is scaled",
	"residual_multiplier":     "nothing is scaled",
	"logits_scaling":          "nothing is scaled",
	"is_encoder_decoder":      "there is a decoder only",
	"add_cross_attention":     "there is a decoder only",
	"pruned_heads":            "no heads are pruned",
	"per_layer_config":        "all layers are alike",
}

// refused reports whether a key that has no meaning here might have one for the
// mathematics, and why.
func refused(key string, value strictjson.Value) (reason string, yes bool) {
	if slices.Contains(harmless, key) || empty(value) {
		return "", false
	}
	if reason = reasons[key]; reason == "" {
		reason = "unknown key: it may change the mathematics; take it out if it does not"
	}
	return reason, true
}
